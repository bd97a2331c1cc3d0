"""The figures of a broker's disk add up, and what a broker does not say is unknown."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef
from dashboard.live.sampler import Sampler, read_facts
from dashboard.status.board import Board
from dashboard.status.disk_metrics import PARTS, disk_parts, put_disk
from dashboard.status.metric import Metrics
from store.upkeep.disk_space import disk_space
from tests.waiting import until

BROKER = BrokerRef("broker-a", "127.0.0.1:1", "c")
GIB = 1 << 30
TOLD = {
    "diskStoreBytes": str(2 * GIB), "diskOthersBytes": str(30 * GIB), "diskFreeBytes": str(60 * GIB),
    "diskReservedBytes": str(160 * GIB), "commitLogMinOffset": "0", "commitLogMaxOffset": str(GIB // 2),
}  # fmt: skip


def test_the_parts_are_the_whole_disk() -> None:
    parts = disk_parts(read_facts(BROKER, TOLD, 1.0, None))
    assert parts is not None and tuple(parts) == PARTS
    assert parts["whole"] == 252 * GIB == sum(parts[name] for name in PARTS[:-1])
    assert (parts["messages"], parts["ahead"]) == (GIB // 2, 3 * GIB // 2)


def test_a_broker_that_says_less_has_unknown_figures_and_no_zeros() -> None:
    facts = read_facts(BROKER, {key: text for key, text in TOLD.items() if key != "diskFreeBytes"}, 1.0, None)
    metrics = Metrics(now=1.0)
    put_disk(metrics, "broker.a", facts, None)
    assert disk_parts(facts) is None
    assert {metrics.values[f"broker.a.disk.{name}"].text for name in PARTS} == {"—"}


def test_used_free_and_reserved_are_all_of_a_file_system(tmp_path: Path) -> None:
    import os

    space, stat = disk_space(tmp_path), os.statvfs(tmp_path)
    whole = space.used_bytes + space.free_bytes + space.reserved_bytes
    assert abs(whole - stat.f_blocks * stat.f_frsize) < GIB, "but for what others wrote in between"


async def test_a_broker_says_which_device_its_log_is_on(gateway: Gateway, transactional_db: None) -> None:
    sampler = Sampler(gateway, keep=Board())
    said: list[str] = []

    async def is_known() -> bool:
        [broker] = (await sampler.sample()).brokers
        said.append(broker.facts.disk_device if broker.facts else "")
        return bool(said[-1])

    await until(is_known)
    assert re.fullmatch(r"\d+:\d+( \d+:\d+)*", said[-1])
