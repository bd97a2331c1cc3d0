"""Who comes in at the port for slaves while others crowd it: a slave does, and hears why when it does not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.broker.replication.ha_frames import OFFSET
from appliance.broker.replication.handshake import Hello, read_hello
from appliance.broker.replication.master import greeting, slaves
from gantrymq.log_limit import LINES_MAX
from tests.appliance.broker.replication.accounts import with_accounts
from tests.appliance.broker.replication.pair import MASTER, STORE, caught_up, follower_of, send, slave_of
from tests.harness import ServingCluster, serving
from tests.waiting import WITHIN_S, until

SILENT = 100
NEVER = {"ha_housekeeping_ms": 3_600_000}  # nobody is given up for silence


@contextlib.asynccontextmanager
async def silent_crowd(port: int, count: int = SILENT) -> AsyncIterator[None]:
    writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(count)]
    try:
        yield
    finally:
        for writer in writers:
            writer.close()


def about_slaves(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if str(getattr(record, "event", "")).startswith("slave_")]


def greeting_of(cluster: ServingCluster, number: int = 1) -> Hello:
    return Hello(broker_name=cluster.broker.config.broker_name, role="SLAVE", address=f"127.0.0.1:{number}")


@pytest.mark.parametrize("has_accounts", [False, True])
async def test_silent_connections_keep_no_slave_away_and_fill_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_accounts: bool
) -> None:
    accounts = with_accounts(tmp_path) if has_accounts else {}
    async with serving(tmp_path, broker=MASTER | NEVER | accounts, store=STORE) as cluster:
        caplog.set_level("INFO")
        async with silent_crowd(cluster.broker.slaves.port):
            await until(lambda: len(about_slaves(caplog)) >= LINES_MAX)
            settings = {"credentials_file": tmp_path / "administrator.yml"} if has_accounts else {}
            async with slave_of(cluster, tmp_path / "slave", **settings) as slave:
                client = follower_of(slave).ha_client
                await until(lambda: client.is_copying)
                assert len(cluster.broker.slaves.slaves) == 1, "who is silent is not a slave"
        assert len([each for each in about_slaves(caplog) if "closed to make room" in str(vars(each))]) == LINES_MAX


async def test_a_slave_of_rocketmqs_may_be_silent_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names its place five seconds after it connected."""
    monkeypatch.setattr(greeting, "GREETING_S", 0.01)
    async with serving(tmp_path, broker=MASTER | NEVER, store=STORE) as cluster:
        await send(cluster, 3)
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
        async with silent_crowd(cluster.broker.slaves.port, greeting.PLACES_AN_ADDRESS - 1):
            await asyncio.sleep(0.2)  # longer than a greeting may take
            writer.write(OFFSET.pack(0))
            async with asyncio.timeout(WITHIN_S):
                assert len(await reader.readexactly(12)) == 12
        writer.close()


async def test_where_all_must_greet_who_does_not_is_let_go_and_waited_for_longer_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greeting, "GREETING_S", 0.01)
    accounts = with_accounts(tmp_path)
    async with serving(tmp_path, broker=MASTER | NEVER | accounts, store=STORE) as cluster:
        hello = greeting_of(cluster)
        tries = 0
        async with asyncio.timeout(WITHIN_S):
            while True:  # a slave so starved that it greets after half a second
                reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
                await asyncio.sleep(0.5)
                tries += 1
                writer.write(hello.to_bytes())
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    assert (await read_hello(reader)).challenge
                    break
                writer.close()
        assert tries > 1
        writer.close()


async def test_only_who_greeted_takes_a_place_and_the_next_hears_why_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slaves, "SLAVES_MAX", 2)
    async with serving(tmp_path, broker=MASTER | NEVER, store=STORE) as cluster:
        await send(cluster, 1)
        writers = []
        for number in (1, 2):
            reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
            writer.write(greeting_of(cluster, number).to_bytes())
            assert (await read_hello(reader)).refusal == ""
            writers.append(writer)
        async with slave_of(cluster, tmp_path / "slave", broker_id=3) as slave:
            client = follower_of(slave).ha_client
            await until(lambda: client.why == "2 slaves are connected already")
            for writer in writers:
                writer.close()
            await caught_up(slave, cluster.broker)


async def test_without_accounts_one_address_has_not_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slaves, "SLAVES_AN_ADDRESS_MAX", 1)
    async with serving(tmp_path, broker=MASTER | NEVER, store=STORE) as cluster:
        _, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
        writer.write(OFFSET.pack(0))
        await until(lambda: len(cluster.broker.slaves.slaves) == 1)
        other, other_writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
        other_writer.write(greeting_of(cluster).to_bytes())
        assert (await read_hello(other)).refusal == "1 slaves of its address are connected already"
        assert await other.read() == b""
        writer.close()
        other_writer.close()


async def test_a_sync_master_as_rocketmqs_files_say_it_has_a_slave_of_its_machine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"broker_role": "SYNC_MASTER", "ha_heartbeat_ms": 200}
    async with serving(tmp_path, broker=settings, store=STORE) as cluster:
        assert "only slaves of this machine may copy its log; set slavesEnable=true" in caplog.text
        async with slave_of(cluster, tmp_path / "slave") as slave:
            client = follower_of(slave).ha_client
            await until(lambda: client.is_copying)
            await send(cluster, 1)


async def test_a_slave_of_another_address_hears_that_it_is_not_let_in(tmp_path: Path) -> None:
    settings = MASTER | NEVER | {"ha_slave_addresses": "10.1.0.0/16"}
    async with serving(tmp_path, broker=settings, store=STORE) as cluster:
        await send(cluster, 1)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            client = follower_of(slave).ha_client
            await until(lambda: client.why == "the slave's address is not in haSlaveAddresses of its master")
        hello = greeting_of(cluster)
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
        writer.write(hello.to_bytes())
        told = await read_hello(reader)
        assert (told.address, told.begin, told.end, told.epochs) == ("", hello.begin, hello.end, hello.epochs), (
            "nothing of this broker"
        )
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
        writer.write(OFFSET.pack(0))
        async with asyncio.timeout(WITHIN_S):
            assert await reader.read() == b"", "bytes that RocketMQ's slave would take for its log are not sent"
        writer.close()
