"""A broker's memory: its parts add up to what the kernel says is resident, and what is counted is there."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from appliance.broker.status import memory
from appliance.broker.timer.due_table import PLACE_BYTES
from gantrymq import Message, Producer
from gantrymq.client.admin.client import AdminClient
from store.log.transient_pool import TransientPool
from tests.appliance.broker.processors.tool import Tool
from tests.appliance.broker.runtime_table import runtime_table
from tests.harness import LocalCluster, serving
from tests.waiting import until

PARTS = {f"memory{part}Bytes" for part in ("Mapped", "Request", "Subscription", "Timer", "Pool", "Free", "Other")}
MIB = 1 << 20
KERNEL = """Name:\tpython
RssAnon:\t    1000 kB
RssFile:\t     300 kB
RssShmem:\t     200 kB
VmSwap:\t       7 kB
"""


def parts_of(table: dict[str, str]) -> dict[str, int]:
    found = {key: int(table[key]) for key in PARTS}
    assert sum(found.values()) == int(table["memoryBytes"])
    assert min(found.values()) >= 0
    return found


@contextlib.contextmanager
def half_a_frame(address: str, size_bytes: int) -> Iterator[None]:
    """A request that does not end."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        header = b'{"code":10,"flag":0,"language":"JAVA","opaque":1,"version":401,"extFields":{}}'
        head = (4 + len(header) + 2 * size_bytes).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
        connection.sendall(head + bytes(size_bytes))
        yield


@pytest.mark.slow
async def test_parts_add_up_to_what_is_resident_while_a_broker_works(tmp_path: Path) -> None:
    body, size = os.urandom(64 << 10), 3 * MIB
    with LocalCluster(tmp_path) as cluster:
        async with (
            Producer(cluster.namesrv_address, group="p") as producer,
            AdminClient(cluster.namesrv_address) as admin,
        ):
            await producer.send(Message("T", b"x"))

            async def told() -> dict[str, str]:
                return await admin.brokers.runtime_info(cluster.broker_address)

            idle = parts_of(await told())
            with half_a_frame(cluster.broker_address, size):
                for _ in range(64):
                    await producer.send(Message("T", body))

                async def is_read() -> bool:
                    return parts_of(await told())["memoryRequestBytes"] >= idle["memoryRequestBytes"] + size

                await until(is_read)
                busy = parts_of(await told())
                process = psutil.Process(cluster.broker.pid)

                async def agrees() -> bool:  # the two are not of one moment: the broker may give memory back between
                    return abs(int((await told())["memoryBytes"]) - process.memory_info().rss) < 4 * MIB

                await until(agrees)
            assert busy["memoryMappedBytes"] > idle["memoryMappedBytes"], "pages of the log"


async def test_what_is_counted_is_told(tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_STATUS", _file(tmp_path, KERNEL))
    broker = tool.broker
    for due_ms in range(100):
        broker.timer.due.add(due_ms, bytes(PLACE_BYTES))
    broker.consumers.subscribed_bytes = 3 << 10
    broker.memory_trimmer.kept_bytes = 5 << 10
    table = runtime_table(broker)
    found = parts_of(table)
    assert found["memoryTimerBytes"] == 100 * PLACE_BYTES
    assert (found["memorySubscriptionBytes"], found["memoryFreeBytes"]) == (3 << 10, 5 << 10)
    assert (table["memoryBytes"], table["memoryMappedBytes"]) == (str(1500 << 10), str(500 << 10))
    assert table["memorySwappedBytes"] == str(7 << 10)


async def test_more_than_is_resident_is_never_told(tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_STATUS", _file(tmp_path, KERNEL))
    tool.broker.consumers.subscribed_bytes = 600 << 10
    tool.broker.memory_trimmer.kept_bytes = 600 << 10  # a part of it is swapped out
    found = parts_of(runtime_table(tool.broker))
    assert (found["memorySubscriptionBytes"], found["memoryFreeBytes"], found["memoryOtherBytes"]) == (
        600 << 10, 400 << 10, 0,
    )  # fmt: skip


async def test_what_the_transient_pool_holds_is_the_brokers_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"transient_pool_enable": True}
    async with serving(tmp_path, store=settings) as cluster, Producer(cluster.namesrv_address, group="p") as producer:
        with monkeypatch.context() as slow_disk:
            slow_disk.setattr(TransientPool, "commit", lambda pool, end: None)
            await producer.send(Message("T", os.urandom(50_000)))
            found = parts_of(runtime_table(cluster.broker))
        cluster.broker.store.parts.log.commit()
        assert parts_of(runtime_table(cluster.broker))["memoryPoolBytes"] == 0
    assert 50_000 <= found["memoryPoolBytes"] < 60_000


async def test_a_kernel_that_tells_no_parts_tells_the_whole(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = "Name:\tpython\nVmRSS:\t 1500 kB\nVmSwap:\t       7 kB\n"
    monkeypatch.setattr(memory, "_STATUS", _file(tmp_path, old))
    monkeypatch.setattr(memory, "_STATM", _file(tmp_path, "4000 375 125 1 0 2000 0\n", "statm"))
    page = os.sysconf("SC_PAGE_SIZE")
    assert {key: size for key, size in runtime_table(tool.broker).items() if key.startswith("memory")} == {
        "memoryBytes": str(375 * page),
        "memoryMappedBytes": str(125 * page),
        "memorySwappedBytes": str(7 << 10),
    }


async def test_a_system_that_does_not_say_has_no_figures(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "none")
    monkeypatch.setattr(memory, "_STATM", tmp_path / "none")
    assert [key for key in runtime_table(tool.broker) if key.startswith("memory")] == []


def _file(folder: Path, text: str, name: str = "status") -> Path:
    path = folder / name
    path.write_text(text)
    return path
