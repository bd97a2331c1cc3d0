"""Where a start finds the groups that popped: after a stop, after a kill, and when offsets were set before."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.broker.pop.journal import Journal, line_of
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.pop_bodies import SetModeRequest
from store.log.commit_log import CommitLog
from tests.appliance.broker.pop.popper import popping
from tests.appliance.broker.pop.scene import bodies, offset_after_a_kill, offset_of, scene
from tests.harness import LocalCluster, serving
from tests.waiting import until


async def test_a_group_begins_again_with_its_queue(tmp_path: Path) -> None:
    """306 removes a queue whose messages have all expired, and its next message is at 0."""
    async with scene(tmp_path) as (broker, popper):
        (first,) = await popper.pop()
        assert await popper.ack(first) == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CommitLog, "min_offset", broker.store.max_physical_offset)
            assert (await popper.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, {})).code == 0
        journal, lines = broker.pop.journal.path, broker.pop.journal.path.read_bytes()
        await popper.send(b"second")
        assert bodies(await popper.pop()) == [b"second"]
    assert await offset_after_a_kill(tmp_path, journal, lines) == 0


async def test_after_a_crash_no_group_is_further_than_its_queue(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, _popper):
        store = broker.store.config.root
    (store / "config" / "consumerOffset.json").write_text('{"offsetTable":{"orders@g":{0:5}}}')
    (store / "abort").touch()
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        for number in range(5):
            await popper.send(b"%d" % number)
        assert len(await popper.pop()) == 5


async def test_a_clean_restart_keeps_leases_and_delivers_nothing_twice(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        for number in range(6):
            await popper.send(b"%d" % number)
        out = await popper.pop(maxMsgNums=4)
        assert await popper.ack(out[1]) == 0
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        assert bodies(await popper.pop()) == [b"4", b"5"]
        assert [await popper.ack(each) for each in out] == [0, 208, 0, 0]
        assert offset_of(cluster.broker) == 4


OFFSET_CHANGES: dict[str, tuple[int, dict[str, str], list[object]]] = {
    "it is set": (
        RequestCode.UPDATE_CONSUMER_OFFSET,
        {"consumerGroup": "g", "topic": "orders", "queueId": "0", "commitOffset": "0"},
        ["at", "g", "orders", 0, 0],
    ),
    "it is another group's": (
        RequestCode.CLONE_GROUP_OFFSET,
        {"srcGroup": "other", "destGroup": "g", "topic": "orders", "offline": "true"},
        ["at", "g", "orders", 0, 0],
    ),
    "its topic is deleted": (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"}, ["gone", "g", "orders", 0]),
    "its group is deleted": (
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        {"groupName": "g", "removeOffset": "true"},
        ["gone", "g", "orders", 0],
    ),
}


@pytest.mark.parametrize("what", OFFSET_CHANGES)
async def test_a_kill_after_an_offset_changed_does_not_bring_it_back(tmp_path: Path, what: str) -> None:
    code, fields, expected = OFFSET_CHANGES[what]
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        first, _second = await popper.pop()
        assert await popper.ack(first) == 0
        broker.offsets.commit("other", "orders", 0, 0)
        assert (await popper.ask(code, fields)).code == 0
        records = [record for record in Journal(broker.pop.journal.path, list).read() if record[1:4] == expected[1:4]]
        assert records[-1] == expected, "what a start would find now"


@pytest.mark.parametrize("what", OFFSET_CHANGES)
async def test_a_kill_leaves_an_offset_where_it_was_set_while_nothing_was_out(tmp_path: Path, what: str) -> None:
    code, fields, expected = OFFSET_CHANGES[what]
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        assert await popper.ack_all(await popper.pop()) == 0
        await broker.pop.journal.rewrite()
        broker.offsets.commit("other", "orders", 0, 0)
        assert (await popper.ask(code, fields)).code == 0
        journal, lines = broker.pop.journal.path, broker.pop.journal.path.read_bytes()
    assert await offset_after_a_kill(tmp_path, journal, lines) == (0 if expected[0] == "at" else -1)


async def test_a_kill_puts_no_group_to_where_it_was_in_a_deleted_topic(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper):
        for number in range(5):
            await popper.send(b"%d" % number)
        assert await popper.ack_all(await popper.pop()) == 0
        assert (await popper.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})).code == 0
        for number in range(3):
            await popper.send(b"%d" % number)
        assert await popper.ack_all(await popper.pop(maxMsgNums=1)) == 0
        journal, lines = broker.pop.journal.path, broker.pop.journal.path.read_bytes()
    assert await offset_after_a_kill(tmp_path, journal, lines) == 1


@pytest.mark.parametrize("what", ["its topic is deleted", "its group is deleted"])
async def test_a_kill_gives_no_offset_back_to_a_group_that_pulls(tmp_path: Path, what: str) -> None:
    """No journal knows of it: what counts is the file as it is when the request is answered."""
    code, fields, _record = OFFSET_CHANGES[what]
    rarely = {"flush_consumer_offset_interval_ms": 600_000}
    async with serving(tmp_path, broker=rarely) as cluster, popping(cluster.broker_address) as popper:
        await popper.send(b"first")
        cluster.broker.offsets.commit("g", "orders", 0, 1)
        cluster.broker.offsets.persist()
        assert (await popper.ask(code, fields)).code == 0
        await popper.send(b"of the next topic")
        path = cluster.broker.store.config.root / "config" / "consumerOffset.json"
        text = path.read_bytes()
    path.write_bytes(text)
    assert await offset_after_a_kill(tmp_path, cluster.broker.pop.journal.path, b"") == -1


async def test_a_start_leaves_leases_out_whose_group_has_no_room_for_an_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as cluster:
        path = cluster.broker.pop.journal.path
    path.write_bytes(line_of(["out", "other", "orders", 0, [0], 1, 1000, 61_000, False, ""]))
    monkeypatch.setattr("appliance.broker.groups.consumer_offset.KEYS_MAX", 0)
    async with serving(tmp_path) as cluster:
        assert cluster.broker.pop.figures()["popMessagesOut"] == "0"


async def test_a_killed_broker_leaves_a_group_where_it_pulled_to_since_it_popped(tmp_path: Path) -> None:
    """Consumers that pull commit one-way, several times a second: no commit of theirs may need the journal."""
    place = {"consumerGroup": "g", "topic": "orders", "queueId": "0"}
    with LocalCluster(tmp_path, broker_properties={"flushConsumerOffsetInterval": "50"}) as cluster:
        async with popping(cluster.broker_address) as popper:
            for number in range(5):
                await popper.send(b"%d" % number)
            for delivered in await popper.pop(maxMsgNums=2):
                assert await popper.ack(delivered) == 0
            assert (await popper.ask(401, {}, SetModeRequest("orders", "g", "PULL", 0).to_json())).code == 0
            code = RequestCode.UPDATE_CONSUMER_OFFSET
            assert (await popper.ask(code, place | {"commitOffset": "1"})).code == 0, "a tool's"
            commit = RemotingCommand.request(code, place | {"commitOffset": "4"})
            await popper.client.invoke_oneway(cluster.broker_address, commit)
            journal = cluster.store / "config" / "pop.journal"
            await until(lambda: b'["left","g","orders",0]' in journal.read_bytes())
        cluster.kill_broker()
        cluster.start_broker()
        async with popping(cluster.broker_address) as popper:
            assert (await popper.ask(RequestCode.QUERY_CONSUMER_OFFSET, place)).ext_fields["offset"] == "4"
