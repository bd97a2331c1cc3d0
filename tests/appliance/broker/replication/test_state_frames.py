"""What a slave of ours hears of its master's tables while it copies, and what a promotion makes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from appliance.bench.frames import send_fields
from appliance.broker.controller import BrokerController
from appliance.broker.replication import state_frames
from appliance.broker.replication.ha_frames import FrameError
from appliance.broker.replication.in_sync_file import InSyncRecord
from appliance.broker.replication.state_frames import StateSink
from appliance.broker.timer.service import TimerService
from appliance.process.json_file import StateFileError
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.replication.brokers import group, is_master, promote, same_logs, send
from tests.appliance.broker.replication.pair import MASTER, PULL, STORE, TOPIC, CuttingProxy, follower_of, slave_of
from tests.appliance.broker.replication.pair import send as send_to
from tests.appliance.peer import connected
from tests.harness import serving
from tests.waiting import until


async def ignore(*_args: Any) -> None:
    """In place of what the slave asks for: what it then has, it was told."""


def asks_for_nothing_more(monkeypatch: pytest.MonkeyPatch, slave: BrokerController) -> None:
    for table in (slave.topics, slave.groups):
        monkeypatch.setattr(table, "replace_all", ignore)


async def test_topics_groups_and_offsets_come_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, slave_of(cluster, tmp_path / "slave") as slave:
        master, sink = cluster.broker, follower_of(slave).sink
        await until(lambda: follower_of(slave).synchronize.complete_at > 0 and sink.taken_at > 0)
        asks_for_nothing_more(monkeypatch, slave)
        for number in range(450):  # more than one state tells
            master.topics.update(TopicConfig(f"New-{number}", 3, 3, perm=4))
        master.groups.update(SubscriptionGroupConfig("Readers", retry_max_times=3))
        master.offsets.commit("Readers", TOPIC, 0, 7)
        await until(lambda: slave.topics.configs == master.topics.configs and "Readers" in slave.groups.configs)
        assert slave.groups.configs["Readers"] == master.groups.configs["Readers"]
        await until(lambda: slave.offsets.query("Readers", TOPIC, 0) == 7)
        master.topics.delete("New-1")
        await until(lambda: slave.topics.configs == master.topics.configs)
        assert "New-1" not in slave.topics.configs


async def test_a_state_comes_behind_all_that_it_tells_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is taken others have turns. A slave that is promoted without a timed message that it was told is
    delivered would never deliver it."""
    told: list[tuple[int, int]] = []
    slaves: list[BrokerController] = []
    take = StateSink.take
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        master = cluster.broker

        async def meanwhile() -> None:
            await send_to(cluster, 1)

        def noted(sink: StateSink, body: bytes) -> bool:
            for slave in slaves:  # none while it starts
                told.append((orjson.loads(body)["timer"][1], slave.store.max_physical_offset))
            return take(sink, body)

        monkeypatch.setattr(StateSink, "take", noted)
        monkeypatch.setattr(TimerService, "reached", property(lambda _timer: (0, master.store.max_physical_offset)))
        monkeypatch.setattr(master.offsets, "note_changes", meanwhile)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            slaves.append(slave)
            await until(lambda: len(told) >= 3)
        assert all(0 < delivered <= end for delivered, end in told), told


async def test_offsets_that_were_removed_go_from_the_slave_too(tmp_path: Path) -> None:
    """With automatic failover it would bring them back: a master that was killed asks for its offsets."""
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        offsets = cluster.broker.offsets
        for queue_id in range(2):
            offsets.commit("Readers", TOPIC, queue_id, 7)
            offsets.commit("Readers", "Other", queue_id, 7)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            await until(lambda: slave.offsets.table == offsets.table)
            offsets.remove_topic("Other")
            offsets.remove_topic(TOPIC)
            offsets.commit("Readers", TOPIC, 0, 1)
            await until(lambda: slave.offsets.table == {f"{TOPIC}@Readers": {0: 1}})
            offsets.commit("Writers", TOPIC, 0, 1)
            await until(lambda: slave.offsets.table == offsets.table)
            offsets.remove_group("Readers")
            await until(lambda: slave.offsets.table == {f"{TOPIC}@Writers": {0: 1}})


async def test_a_topic_that_a_slave_never_heard_of_is_brought_back_with_its_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The master is lost between the message and the state behind it."""
    monkeypatch.setattr(StateSink, "take", lambda _sink, _body: False)
    async with group(tmp_path) as brokers, brokers.broker("two", broker_id=1) as two:
        async with brokers.broker("one") as one:
            slave = two.controller
            await until(
                lambda: follower_of(slave).synchronize.complete_at > 0 and follower_of(slave).ha_client.is_copying
            )
            asks_for_nothing_more(monkeypatch, slave)
            await send(one, 3)
            await same_logs(one, two)
        assert slave.topics.get(TOPIC) is None
        answer = await promote(two)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        await until(lambda: is_master(two))
        async with connected(two.port) as peer:
            found = await peer.ask(RequestCode.PULL_MESSAGE, PULL | {"queueOffset": "0"})
            assert (found.code, found.ext_fields["nextBeginOffset"]) == (ResponseCode.SUCCESS, "3")
            sent = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 3, ""), b"after")
            assert sent.code == ResponseCode.SUCCESS, "all queues that a first send would make are there"


TOPIC_FIELDS = {"readQueueNums": "3", "writeQueueNums": "3", "perm": "6", "topicFilterType": "SINGLE_TAG"}


async def test_progress_that_a_full_disk_does_not_take_is_told_once_and_again_when_it_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(state_frames, "WRITE_S", 0.0)
    are_full = [True, True, False, False, True]

    def keep(record: InSyncRecord) -> None:
        if are_full and are_full.pop(0):
            raise StateFileError(Path("inSync.json"), "no space")

    file: Any = SimpleNamespace(record=InSyncRecord(), keep=keep)
    parts: Any = SimpleNamespace(schedule=SimpleNamespace(persist=lambda: None))
    sink = StateSink(parts, in_sync=file, ask_tables=lambda: None, show=lambda record: None)
    sink.in_sync = InSyncRecord(confirmed=7)

    def said() -> list[str]:
        return [each.message for each in caplog.records if each.name == state_frames.__name__]

    writing = asyncio.create_task(sink.run())
    await until(lambda: len(said()) == 4)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert said() == ["progress of a master not saved", "progress of a master saved again"] * 2


def is_told(master: BrokerController, slave: BrokerController) -> bool:
    """It is in sync, and has said that it has all topics and groups."""
    return bool(master.slaves.in_sync and master.slaves.in_sync.names) and slave.topics.configs == master.topics.configs


async def test_a_sync_master_answers_a_new_topic_when_its_slave_has_it(tmp_path: Path) -> None:
    sync = MASTER | {"broker_role": "SYNC_MASTER", "slave_timeout_ms": 3_600_000, "in_sync_lag_ms": 3_600_000}
    async with (
        serving(tmp_path, broker=sync, store=STORE) as cluster,
        slave_of(cluster, tmp_path / "slave") as slave,
        connected(cluster.broker.port) as peer,
    ):
        await until(lambda: is_told(cluster.broker, slave))
        for number in range(3):
            name = f"Created-{number}"
            answer = await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, TOPIC_FIELDS | {"topic": name})
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            assert slave.topics.configs[name] == cluster.broker.topics.configs[name]
        body = SubscriptionGroupConfig("Readers", retry_max_times=3).to_json()
        answer = await peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
        assert answer.code == ResponseCode.SUCCESS and slave.groups.configs["Readers"].retry_max_times == 3
        answer = await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "Created-1"})
        assert answer.code == ResponseCode.SUCCESS and "Created-1" not in slave.topics.configs


async def test_a_slave_that_says_nothing_holds_an_answer_for_slave_timeout(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sync = MASTER | {"broker_role": "SYNC_MASTER", "slave_timeout_ms": 100, "in_sync_lag_ms": 3_600_000}
    async with (
        serving(tmp_path, broker=sync, store=STORE) as cluster,
        CuttingProxy(cluster.broker.slaves.port) as proxy,
        slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address) as slave,
        connected(cluster.broker.port) as peer,
    ):
        await until(lambda: is_told(cluster.broker, slave))
        proxy.from_master.clear()
        answer = await peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, TOPIC_FIELDS | {"topic": "Created"})
        assert answer.code == ResponseCode.SUCCESS, "the change holds on the master"
        [said] = [line for line in caplog.records if line.__dict__.get("event") == "tables_not_copied"]
        assert said.__dict__["slaves"] == cluster.broker.slaves.in_sync.names  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "body",
    [b"{}", b"[]", b'{"offsets":{},"delays":{},"timer":[0,0],"versions":[[0,0],[0,0]],"topics":{"T":{"perm":"x"}}}'],
)
async def test_what_is_no_state_is_refused_and_changes_nothing(tmp_path: Path, body: bytes) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, slave_of(cluster, tmp_path / "slave") as slave:
        await until(lambda: follower_of(slave).synchronize.complete_at > 0)
        before = dict(slave.topics.configs)
        with pytest.raises(FrameError):
            follower_of(slave).sink.take(body)
        assert slave.topics.configs == before
