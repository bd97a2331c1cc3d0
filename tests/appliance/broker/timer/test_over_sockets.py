"""Timer messages through a real broker: what senders are told, when consumers see them, what tools see meanwhile."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from gantrymq import AdminClient, Message, MessageQueue, Producer
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.produce.recall import recall_at
from gantrymq.errors import GantryError, MessageRejected, ResponseError
from gantrymq.message.model import MessageExt
from gantrymq.message.recall_handle import RecallHandle
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import ResponseCode
from tests.conftest import time_limit
from tests.harness import LocalCluster, ServingCluster, serving
from tests.waiting import WITHIN_S, until

QUEUE = 0
TIMER = "rmq_sys_wheel_timer"


def stored(cluster: ServingCluster, topic: str) -> list[MessageExt]:
    store = cluster.broker.store
    found: list[MessageExt] = []
    for queue_id in store.queue_ids(topic):
        for unit in store.consume_queue_units(topic, queue_id, 0, 1000):
            message = store.look_message_by_offset(unit.physical_offset)
            assert message is not None
            found.append(message)
    return found


@pytest.mark.parametrize(
    "message",
    [
        Message("orders", b"m", tags="t", keys="k", delay_seconds=0.4),
        Message("orders", b"m", tags="t", keys="k", properties={"TIMER_DELAY_MS": "400"}),
        Message("orders", b"m", tags="t", keys="k", properties={"TIMER_DELAY_SEC": "1", "TIMER_DELAY_MS": "999999"}),
    ],
)
async def test_a_message_is_seen_at_its_time_and_counted_then(tmp_path: Path, message: Message) -> None:
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        sent_ms = int(time.time() * 1000)
        await producer.send(message)
        assert cluster.broker.topics.get("rmq_sys_wheel_timer") is not None or cluster.broker.timer.delivered == 0
        await until(lambda: bool(stored(cluster, "orders")))
        (arrived,) = stored(cluster, "orders")
        due_ms = int(arrived.properties["TIMER_OUT_MS"])
        assert due_ms >= sent_ms + 399, "a fraction of a millisecond may be lost on the way"
        assert 0 <= arrived.store_timestamp - due_ms < time_limit(5) * 1000
        assert (arrived.tags, arrived.keys, arrived.body) == ("t", ["k"], b"m")
        assert "REAL_TOPIC" not in arrived.properties
        async with AdminClient(cluster.namesrv_address) as admin:
            info = await admin.brokers.runtime_info(cluster.broker_address)
        assert (info["timerPending"], info["timerDelivered"]) == ("0", "1")


async def test_a_time_that_has_passed_is_no_delay(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        await producer.send(Message("orders", b"m", deliver_at=time.time() - 5))
        await producer.send(Message("orders", b"m", properties={"TIMER_DELAY_SEC": "-3"}))
        assert len(stored(cluster, "orders")) == 2


async def test_a_level_wins_over_a_timer(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        await producer.send(Message("orders", b"m", delay_level=1, delay_seconds=3000))
        await until(lambda: bool(stored(cluster, "orders")))
        assert not [name for name in stored(cluster, "orders")[0].properties if name.startswith("TIMER_")]


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": "61"},
        {"TIMER_DELAY_SEC": "soon"},
        {"TIMER_DELIVER_MS": "99999999999999999999999"},
        {"TIMER_DELIVER_MS": "4102444800000"},
        {"TIMER_DELAY_SEC": "5", "TIMER_DEL_UNIQKEY": "a+b"},
    ],
)
async def test_what_can_not_wait_is_refused_with_the_limit(tmp_path: Path, properties: dict[str, str]) -> None:
    async with serving(tmp_path, store={"timer_delay_max_s": 60}) as cluster:
        async with Producer(cluster.namesrv_address, retries=0) as producer:
            with pytest.raises(GantryError) as refused:
                await producer.send(Message("orders", b"m", properties=properties))
        assert isinstance(refused.value, ResponseError)
        assert refused.value.code == ResponseCode.MESSAGE_ILLEGAL
        assert "the delay time should not be bigger than the max delay 60000ms" in str(refused.value)
        assert stored(cluster, "orders") == []


async def test_a_broker_may_be_told_to_take_none(tmp_path: Path) -> None:
    async with serving(tmp_path, store={"timer_enable": False}) as cluster:
        producer = Producer(cluster.namesrv_address, retries=0)
        async with producer:
            with pytest.raises(GantryError, match="timerWheelEnable is false"):
                await producer.send(Message("orders", b"m", delay_seconds=1))


async def test_batches_take_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        with pytest.raises(MessageRejected):
            await producer.send_batch([Message("orders", b"m", delay_seconds=1)])


async def test_nobody_sends_to_the_timers_own_topic(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address, retries=0) as producer:
        with pytest.raises(GantryError):
            await producer.send(Message("rmq_sys_wheel_timer", b"m"))


async def test_a_killed_broker_delivers_what_it_acknowledged(tmp_path: Path) -> None:
    """Kill it twice while messages wait and come due: all arrive, none before its time."""
    with LocalCluster(tmp_path) as cluster:
        async with AdminClient(cluster.namesrv_address) as admin:
            acknowledged: dict[str, int] = {}
            for round_number in range(3):
                async with Producer(cluster.namesrv_address, delivery_timeout_s=WITHIN_S) as producer:
                    for number in range(150):
                        name, deliver_at = f"{round_number}-{number}", time.time() + 0.1 + number / 50
                        await producer.send(Message("orders", name.encode(), deliver_at=deliver_at))
                        acknowledged[name] = round(deliver_at * 1000)
                if round_number < 2:
                    await until(partial(some_arrived, cluster, f"{round_number}-"))
                    cluster.kill_broker()
                    cluster.start_broker()

            async def all_there() -> bool:
                return acknowledged.keys() <= (await arrived(cluster)).keys()

            await until(all_there)
            for name, stored_ms in (await arrived(cluster)).items():
                assert stored_ms >= acknowledged[name], "came early"

            async def none_waits() -> bool:  # also of those that come a second time
                return (await admin.brokers.runtime_info(cluster.broker_address))["timerPending"] == "0"

            await until(none_waits)


async def test_a_recalled_message_is_not_delivered(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address, namespace="shop") as producer:
        due = time.time() + 10
        recalled = await producer.send(Message("orders", b"recalled", deliver_at=due))
        stays = await producer.send(Message("orders", b"stays", deliver_at=due))
        level = await producer.send(Message("orders", b"level", delay_level=1))
        assert (level.recall_handle, recalled.recall_handle != stays.recall_handle) == ("", True)
        handle = RecallHandle.parse(recalled.recall_handle)
        assert handle == ("shop%orders", "broker-a", round(due * 1000), recalled.msg_id)
        assert await producer.recall(recalled.recall_handle) == recalled.msg_id
        assert await producer.recall(recalled.recall_handle) == recalled.msg_id, "again does no harm"
        await until(lambda: len(stored(cluster, "shop%orders")) >= 2)
        assert {message.body for message in stored(cluster, "shop%orders")} == {b"stays", b"level"}
        (waiting, *_) = [message for message in stored(cluster, TIMER) if "TIMER_DEL_UNIQKEY" in message.properties]
        assert waiting.properties["TIMER_DEL_UNIQKEY"] == f"shop%orders+{recalled.msg_id}"
        with pytest.raises(ResponseError, match="recall failed, timestamp invalid") as late:
            await producer.recall(stays.recall_handle)
        assert late.value.code == ResponseCode.ILLEGAL_OPERATION
        with pytest.raises(MessageRejected):
            await producer.recall("x")


@pytest.mark.parametrize(
    ("handle", "code"),
    [
        (RecallHandle("orders", "broker-a", 1 << 42, "x"), ResponseCode.ILLEGAL_OPERATION),
        (RecallHandle("orders", "broker-a", 1, "x"), ResponseCode.ILLEGAL_OPERATION),
        (RecallHandle("others", "broker-a", 0, "x"), ResponseCode.TOPIC_NOT_EXIST),
        (RecallHandle("orders", "broker-a", 0, "x\x02TRAN_MSG\x01true"), ResponseCode.ILLEGAL_OPERATION),
        (RecallHandle("orders", "broker-a", 0, "x" * 500), ResponseCode.ILLEGAL_OPERATION),
    ],
)
async def test_what_can_not_be_recalled_is_refused(tmp_path: Path, handle: RecallHandle, code: ResponseCode) -> None:
    async with serving(tmp_path) as cluster, Producer(cluster.namesrv_address) as producer:
        await producer.send(Message("orders", b"m"))
        remoting = RemotingClient()
        due_ms = handle.due_ms or int(time.time() * 1000) + 60_000
        with pytest.raises(ResponseError) as refused:
            await recall_at(
                BrokerCalls(remoting), cluster.broker_address, handle.topic, "PG", str(handle._replace(due_ms=due_ms))
            )
        await remoting.close()
        assert refused.value.code == code, refused.value
        assert stored(cluster, TIMER) == []


async def test_a_killed_broker_does_not_deliver_what_it_has_recalled(tmp_path: Path) -> None:
    """Kill it right after recalls, and while messages come due: none of the recalled comes, and all others do."""
    with LocalCluster(tmp_path) as cluster:
        recalled, kept = set(), set()
        for round_number in range(2):
            async with Producer(cluster.namesrv_address, delivery_timeout_s=WITHIN_S) as producer:
                due = time.time() + 6
                for number in range(60):
                    name = f"{round_number}-{number}"
                    result = await producer.send(Message("orders", name.encode(), deliver_at=due + number % 10 / 10))
                    kept.add(name)
                    if number % 3 == 0:
                        try:
                            await producer.recall(result.recall_handle, timeout_s=WITHIN_S)
                        except ResponseError as exc:
                            assert exc.code == ResponseCode.ILLEGAL_OPERATION, "too late, on a busy machine"
                        else:
                            kept.remove(name)
                            recalled.add(name)
            cluster.kill_broker()
            cluster.start_broker()

        async def all_there() -> bool:
            return kept <= (await arrived(cluster)).keys()

        await until(all_there)
        assert not recalled & (await arrived(cluster)).keys()
        assert recalled


async def some_arrived(cluster: LocalCluster, prefix: str) -> bool:
    return any(name.startswith(prefix) for name in await arrived(cluster))


async def arrived(cluster: LocalCluster) -> dict[str, int]:
    """Body to the time it was stored in its topic, the first copy of each."""
    found: dict[str, int] = {}
    async with AdminClient(cluster.namesrv_address) as admin:
        route = await admin.topics.route("orders")
        for data in route.queue_datas:
            for queue_id in range(data.read_queue_nums):
                queue = MessageQueue("orders", data.broker_name, queue_id)
                offset = 0
                while messages := await pulled(admin, cluster.broker_address, queue, offset):
                    offset = messages[-1].queue_offset + 1
                    for message in messages:
                        found.setdefault(message.body.decode(), message.store_timestamp)
    return found


async def pulled(admin: AdminClient, address: str, queue: MessageQueue, offset: int) -> list[MessageExt]:
    return (
        await admin.calls.pull(address, "TOOLS_CONSUMER", queue.topic, queue.queue_id, offset, subscription="*")
    ).messages
