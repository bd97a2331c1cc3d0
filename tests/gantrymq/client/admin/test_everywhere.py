"""AdminClient's calls to every broker: what they return, and what they say when some broker is away."""

from __future__ import annotations

import asyncio
import time

import pytest

from appliance.bench.peer import Peer
from gantrymq import AdminClient, ConsumeFrom, ConsumeResult, Message, MessageExt, MessageQueue, Producer
from gantrymq.client.admin.calls import ask_each
from gantrymq.errors import ConfigError, ConnectError, GantryError, PartlyDone, RouteNotFound
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from tests.gantrymq.client.peers import subscribed, topic_at
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import Seen, numbers, until
from tests.peers.dispatch import until_dispatched
from tests.waiting import WITHIN_S


@pytest.fixture
def name() -> str:
    return f"everywhere_{next(numbers)}"


async def test_acts_on_all_brokers_say_where_it_failed(peer: Peer, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AdminClient(peer.namesrv_address) as admin:
        masters = await admin.cluster.masters()
        assert masters == {peer.broker_name: peer.broker_address}

        async def one_more(cluster: str | None = None) -> dict[str, str]:
            return masters | {"away": closed_port()}

        monkeypatch.setattr(admin.cluster, "masters", one_more)
        for act in (
            admin.topics.create(TopicConfig(name, 1, 1)),
            admin.groups.create(SubscriptionGroupConfig(name)),
            admin.groups.delete(name),
            admin.topics.delete(name),
        ):
            with pytest.raises(PartlyDone) as caught:
                await act
            assert caught.value.done == [peer.broker_name]
            assert isinstance(caught.value.failures["away"], ConnectError)
        progress = await admin.offsets.progress(name)
        assert set(progress.failures) == {"away"}
        assert (progress.queues, progress.lag) == ([], None)


async def test_what_does_not_exist_is_said_so(peer: Peer, name: str) -> None:
    async with AdminClient(peer.namesrv_address) as admin:
        with pytest.raises(ConfigError):
            await admin.cluster.masters("no such cluster")
        for call in (
            admin.topics.masters(name),
            admin.offsets.plan_reset(name, name),
            admin.messages.find_by_key(name, "k"),
        ):
            with pytest.raises(RouteNotFound):
                await call
        assert not (await admin.groups.members(name)).is_online
        assert await admin.name_servers.list_kv(name) == {}


async def test_a_broker_without_access_control_is_told_at_once(peer: Peer) -> None:
    async with AdminClient(peer.namesrv_address) as admin:
        for ask in (admin.accounts.all_at, admin.accounts.version_at):
            with pytest.raises(ConfigError, match="has no access control: set aclEnable=true"):
                await ask(peer.broker_address)


async def test_a_reset_to_a_time_and_a_clone_move_what_they_said(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        await producer.send(Message(name, b"old"))
        await asyncio.sleep(0.05)  # the moment lies clearly behind the first message
        middle_ms = int(time.time() * 1000)
        await asyncio.sleep(0.05)  # and before the second
        await producer.send(Message(name, b"new"))
        await until_dispatched(peer)
        await admin.offsets.set_at(peer.broker_address, name, name, 0, 2)
        for timestamp_ms, target in ((0, 0), (-1, 2), (middle_ms, await _search(admin, peer, name, middle_ms))):
            (move,) = await admin.offsets.plan_reset(name, name, timestamp_ms)
            assert (move.queue, move.before, move.after) == (MessageQueue(name, peer.broker_name, 0), 2, target)
            assert (move.skipped, move.repeated) == (0, 2 - target)
        assert [move.after for move in await admin.offsets.plan_reset(name, name, offset=99)] == [2]
        assert not await admin.offsets.reset(name, name, 0, await admin.offsets.plan_reset(name, name, 0))
        (moved,) = await admin.offsets.clone(name, f"{name}_2", name)
        assert (moved.before, moved.after) == (None, 0)
        assert await admin.offsets.of_queues_at(peer.broker_address, f"{name}_2", name, [0]) == {0: 0}


async def _search(admin: AdminClient, peer: Peer, topic: str, timestamp_ms: int) -> int:
    return await admin.offsets.search_at(peer.broker_address, topic, 0, timestamp_ms)


async def test_a_running_group_is_not_moved_behind_its_back(peer: Peer, name: str) -> None:
    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        seen = Seen()
        async with subscribed(peer, name, seen, consume_from=ConsumeFrom.FIRST_OFFSET):
            await producer.send(Message(name, b"x"))
            await until(lambda: seen.bodies == [b"x"])
            with pytest.raises(ConfigError):
                await admin.offsets.clone(f"{name}_2", name, name)
            with pytest.raises(ConfigError):
                await admin.offsets.reset(name, name, -1, [], by_offset=True)


async def test_a_dead_letter_goes_back_to_where_it_came_from(peer: Peer, name: str) -> None:
    fails = True
    got: list[bytes] = []

    def listener(messages: list[MessageExt]) -> ConsumeResult:
        if fails:
            return ConsumeResult.LATER
        got.extend(message.body for message in messages)
        return ConsumeResult.SUCCESS

    async with topic_at(peer, name, queues=1) as admin, Producer(peer.namesrv_address) as producer:
        async with subscribed(peer, name, listener, max_reconsume_times=0) as consumer:
            await until(lambda: len(consumer.assigned_queues) == 2)
            sent = await producer.send(Message(name, b"again", tags="T", keys="k", properties={"own": "kept"}))
            dead: MessageExt | None = None
            async with asyncio.timeout(WITHIN_S):
                while dead is None:
                    await asyncio.sleep(0.1)
                    try:
                        dead = await admin.messages.find_by_id(f"%DLQ%{name}", sent.msg_id)
                    except GantryError:
                        continue  # the topic is made when the first dead letter comes
            fails = False
            result = await admin.messages.resend(dead)
            assert result.queue.topic == name
            await until(lambda: got == [b"again"])
        again = await admin.messages.view_at(peer.broker_address, int(result.offset_msg_id[16:], 16))
        assert (again.tags, again.keys, again.properties["own"]) == ("T", ["k"], "kept")
        assert "RETRY_TOPIC" not in again.properties


async def test_asking_each_keeps_answers_and_failures_apart() -> None:
    async def ask(key: int) -> int:
        if key == 2:
            raise ConnectError("h:1", "away")
        if key == 3:
            raise ZeroDivisionError
        return key * 10

    answers, failures = await ask_each([1, 2], ask)
    assert (answers, list(failures)) == ({1: 10}, [2])
    with pytest.raises(ZeroDivisionError):
        await ask_each([1, 3], ask)
