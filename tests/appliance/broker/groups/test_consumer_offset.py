"""Consumer offsets: the last commit wins, and the file is RocketMQ's."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.groups.consumer_offset import NO_OFFSET, ConsumerOffsetManager
from appliance.errors import BrokerError
from appliance.process.awake import awake_s
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.remoting.admin_bodies import ConsumerOffsetTable
from gantrymq.remoting.codes import ResponseCode

GOLDEN = Path(__file__).parents[1] / "golden_config" / "consumerOffset.json"
AUTOMATIC = {
    "automatic_failover": True,
    "etcd_endpoints": "http://127.0.0.1:2379",
    "all_ack_in_sync": True,
    "read_confirmed_only": True,
    "broker_role": "SYNC_MASTER",
    "slaves_enable": True,
}


def manager(folder: Path, **settings: Any) -> ConsumerOffsetManager:
    offsets = ConsumerOffsetManager(folder / "consumerOffset.json", BrokerConfig(**settings))
    offsets.load()
    return offsets


def test_the_last_commit_wins_even_if_it_is_smaller(tmp_path: Path) -> None:
    offsets = manager(tmp_path)
    assert offsets.query("g", "t", 0) == NO_OFFSET
    offsets.commit("g", "t", 0, 10)
    offsets.commit("g", "t", 0, 3)
    assert offsets.query("g", "t", 0) == 3
    assert offsets.query("g", "t", 1) == NO_OFFSET
    assert offsets.query("h", "t", 0) == NO_OFFSET


def test_a_real_brokers_file_is_read_exactly_and_written_as_json(tmp_path: Path) -> None:
    path = tmp_path / "consumerOffset.json"
    path.write_bytes(GOLDEN.read_bytes())
    offsets = manager(tmp_path)
    assert offsets.table == {
        "%RETRY%CG1@CG1": {0: 1},
        "TopicTest@CG1": {0: 2, 1: 1, 2: 2, 3: 3},
        "RMQ_SYS_TRANS_OP_HALF_TOPIC@CID_RMQ_SYS_TRANS": {0: 3},
        "%RETRY%CG_SQL@CG_SQL": {0: 0},
        "RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS": {0: 4},
        "TopicTest@CG_SQL": {0: 2, 1: 1, 2: 2, 3: 3},
    }
    offsets.commit("CG1", "TopicTest", 3, 9)
    offsets.persist()
    assert json.loads(path.read_bytes())["offsetTable"]["TopicTest@CG1"] == {"0": 2, "1": 1, "2": 2, "3": 9}
    assert manager(tmp_path).table == offsets.table
    assert (tmp_path / "consumerOffset.json.bak").read_bytes() == GOLDEN.read_bytes()


def test_of_two_members_tables_the_larger_offsets_count_of_topics_that_are_there(tmp_path: Path) -> None:
    offsets = manager(tmp_path)
    for queue_id, offset in ((0, 5), (1, 9)):
        offsets.commit("g", "t", queue_id, offset)
    theirs = {"t@g": {0: 7, 1: 8, 2: 1, 3: 11}, "t@h": {0: 3}, "deleted@g": {0: 4}}
    offsets.put_further(ConsumerOffsetTable(theirs), {"t"}, lambda topic, queue_id: 10)
    assert offsets.table == {"t@g": {0: 7, 1: 9, 2: 1}, "t@h": {0: 3}}


@pytest.mark.parametrize(("settings", "left"), [({}, {"t@g", "t@h"}), (AUTOMATIC, {"t@g"})])
def test_what_a_master_has_forgotten_goes_if_it_has_asked_the_others(
    tmp_path: Path, settings: dict[str, Any], left: set[str]
) -> None:
    offsets = manager(tmp_path, **settings)
    for group in "gh":
        offsets.commit(group, "t", 0, 5)
    offsets.keep_only({"t@g"})
    assert offsets.table.keys() == left


async def test_offsets_of_the_file_may_be_old_on_a_master_with_automatic_failover(tmp_path: Path) -> None:
    offsets = manager(tmp_path, **AUTOMATIC)
    offsets.moves_until = math.inf
    assert offsets.has_to_wait and not offsets.may_move
    waits = asyncio.create_task(offsets.until_new())
    await asyncio.sleep(0)
    offsets.are_new()
    assert await waits and offsets.may_move and not offsets.has_to_wait
    assert not manager(tmp_path).may_be_old
    assert not manager(tmp_path, **AUTOMATIC | {"broker_role": "SLAVE", "broker_id": 1}).has_to_wait


def test_consumers_move_nothing_that_the_next_master_would_not_have(tmp_path: Path) -> None:
    offsets = manager(tmp_path)
    offsets.commit_of_pull("g", "t", 0, 1)
    offsets.moves_until = awake_s() - 1
    offsets.commit_of_pull("g", "t", 0, 2)
    with pytest.raises(BrokerError) as refused:
        offsets.check_may_move()
    assert (refused.value.code, offsets.query("g", "t", 0)) == (ResponseCode.SERVICE_NOT_AVAILABLE, 1)
    offsets.moves_until = awake_s() + 3600
    offsets.commit_of_pull("g", "t", 0, 3)
    assert offsets.query("g", "t", 0) == 3


def test_with_automatic_failover_a_slave_takes_no_commits(tmp_path: Path) -> None:
    automatic = {"automatic_failover": True, "etcd_endpoints": "http://127.0.0.1:1", "read_confirmed_only": True}
    offsets = manager(tmp_path, **automatic, all_ack_in_sync=True, broker_role="SLAVE", broker_id=1)
    with pytest.raises(BrokerError, match="its master keeps them"):
        offsets.check_may_move()
    manager(tmp_path, broker_role="SLAVE", broker_id=1).check_may_move()  # as RocketMQ's


def test_topics_and_groups_find_each_other(tmp_path: Path) -> None:
    offsets = manager(tmp_path)
    offsets.commit("g", "a", 0, 1)
    offsets.commit("g", "b", 2, 5)
    offsets.commit("h", "b", 0, 1)
    assert offsets.topics_of("g") == {"a", "b"}
    assert offsets.groups_of("b") == {"g", "h"}
    assert offsets.offsets("b", "g") == {2: 5}
    assert offsets.offsets("b", "nobody") == {}


def test_removed_groups_and_topics_are_gone_from_the_file_too(tmp_path: Path) -> None:
    offsets = manager(tmp_path)
    for group in ("g", "h"):
        for topic in ("a", "b"):
            offsets.commit(group, topic, 0, 1)
    offsets.persist()
    offsets.remove_group("g")
    offsets.remove_topic("a")
    offsets.persist()
    again = manager(tmp_path)
    assert again.table == {"b@h": {0: 1}}
    assert again.topics_of("g") == set()
    assert again.groups_of("a") == set()


@pytest.mark.parametrize(("group", "topic"), [("g@h", "t"), ("g", "t@u"), ("", "t"), ("g", "")])
def test_names_that_would_spoil_the_file_are_refused(tmp_path: Path, group: str, topic: str) -> None:
    offsets = manager(tmp_path)
    with pytest.raises(MessageRejected):
        offsets.commit(group, topic, 0, 1)
    assert offsets.table == {}


async def test_commits_are_written_each_interval_and_at_the_end(tmp_path: Path) -> None:
    offsets = manager(tmp_path, flush_consumer_offset_interval_ms=20)
    task = asyncio.create_task(offsets.run())
    offsets.commit("g", "t", 0, 1)
    async with asyncio.timeout(30):
        while not (tmp_path / "consumerOffset.json").exists():
            await asyncio.sleep(0.01)
    offsets.commit("g", "t", 0, 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert manager(tmp_path).query("g", "t", 0) == 2


async def test_a_great_table_is_rendered_while_others_run_and_commits_go_on(tmp_path: Path) -> None:
    offsets = manager(tmp_path, flush_consumer_offset_interval_ms=1)
    for number in range(2000):
        offsets.commit("g", f"t{number}", 0, 1)
    task = asyncio.create_task(offsets.run())
    for number in range(2000):
        offsets.commit("g", f"t{number}", 0, 2)
        if number == 1000:
            offsets.remove_topic("t1999")
        if number % 100 == 0:
            await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    again = manager(tmp_path)
    assert again.table == offsets.table
    assert set(map(tuple, (queues.items() for queues in again.table.values()))) == {((0, 2),)}
