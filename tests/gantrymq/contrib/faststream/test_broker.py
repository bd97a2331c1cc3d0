"""FastStream's own package with a GantryBroker: in memory as it tests applications, and at a running broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faststream import AckPolicy, FastStream
from faststream.exceptions import FeatureNotSupportedException, IncorrectState, NackMessage, RejectMessage, SetupError
from faststream.specification import AsyncAPI
from pydantic import BaseModel

from gantrymq import ConsumeFrom
from gantrymq.contrib.faststream import (
    GantryBatchMessage,
    GantryBroker,
    GantryMessage,
    GantryRouter,
    TestGantryBroker,
)
from gantrymq.errors import ConfigError, MessageRejected
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import until
from tests.harness import serving
from tests.waiting import WITHIN_S

FIRST = ConsumeFrom.FIRST_OFFSET


class Order(BaseModel):
    id: str
    count: int = 1


async def test_an_application_is_tested_without_a_broker() -> None:
    broker = GantryBroker()
    router = GantryRouter("eu-")
    seen: list[tuple[Any, Any]] = []

    @broker.subscriber("orders", "big || huge", group="billing")
    @broker.publisher("bills", tags="new", headers={"from": "billing"})
    async def bill(order: Order) -> dict[str, str]:
        return {"bill": order.id}

    @router.subscriber("bills", group="post")
    def post(bill: dict[str, str], message: GantryMessage) -> None:
        raise AssertionError(message)

    @broker.subscriber("bills", group="books")
    async def book(bill: dict[str, str]) -> None:
        seen.append((bill, None))

    broker.include_router(router)
    async with TestGantryBroker(broker) as test:
        await test.publish(Order(id="small"), "orders", tags="small")
        result = await test.publish(Order(id="o-1"), "orders", tags="big", keys="k", headers={"n": 1})
        assert len(result.msg_id) == 32
        assert bill.mock is not None
        bill.mock.assert_called_once_with({"id": "o-1", "count": 1})
        assert seen == [({"bill": "o-1"}, None)]
        answer = await test.request({"id": "o-2"}, "orders", tags="huge")
        assert await answer.decode() == {"bill": "o-2"}
        with pytest.raises(Exception, match="count"):
            await test.publish({"id": "o", "count": "many"}, "orders", tags="big")


async def test_an_application_runs_at_a_broker_with_retries_dead_letters_and_answers(tmp_path: Path) -> None:
    tries: list[tuple[str, int]] = []
    booked: list[tuple[dict[str, Any], dict[str, str]]] = []
    async with serving(tmp_path, store={"delay_levels": " ".join(["1s"] * 18)}) as cluster:
        broker = GantryBroker(cluster.namesrv_address, namespace="shop")

        @broker.subscriber("orders", group="billing", consume_from=FIRST, max_reconsume_times=1)
        @broker.publisher("bills", headers={"from": "billing"})
        async def bill(order: Order, message: GantryMessage) -> dict[str, Any]:
            tries.append((order.id, message.raw_message.tries))
            if order.id == "hopeless":
                raise RejectMessage(reason="out of stock")
            if order.id == "later" and message.raw_message.tries == 1:
                raise NackMessage(delay_s=1)
            if order.id == "broken":
                raise LookupError(order.id)
            return {"bill": order.id}

        @broker.subscriber("bills", group="books", consume_from=FIRST, ack_policy=AckPolicy.ACK_FIRST)
        async def book(bill: dict[str, Any], message: GantryMessage) -> None:
            booked.append((bill, message.headers))

        @broker.subscriber("questions", group="oracle", consume_from=FIRST)
        async def answer(text: str) -> str:
            return text.upper()

        app = FastStream(broker)
        assert await broker.ping(timeout=WITHIN_S)
        await app.start()
        try:
            for name in ("plain", "hopeless", "later", "broken"):
                await broker.publish(Order(id=name), "orders", keys=name)
            reply = await broker.request("what", "questions", timeout=WITHIN_S)
            assert await reply.decode() == "WHAT"
            await until(lambda: cluster.broker.store.max_offset("%DLQ%shop%billing", 0) == 2)
            await until(lambda: sorted(bill["bill"] for bill, _ in booked) == ["later", "plain"])
        finally:
            await app.stop()
    assert sorted(tries) == [
        ("broken", 1), ("broken", 2), ("hopeless", 1), ("later", 1), ("later", 2), ("plain", 1),
    ]  # fmt: skip
    headers = booked[0][1]
    assert (headers["from"], headers["content-type"]) == ("billing", "application/json")


async def test_what_can_not_be_is_said_where_it_is_made() -> None:
    broker = GantryBroker(closed_port())
    for _ in range(2):

        @broker.subscriber("orders", group="same")
        async def listen(body: bytes) -> None: ...

    with pytest.raises(SetupError, match="group same"):
        await broker.start()
    with pytest.raises(ConfigError):
        GantryBroker("127.0.0.1:9876", retries=-1)
    assert not await broker.ping(timeout=0.5)


def test_the_description_names_topics_and_payloads() -> None:
    broker = GantryBroker("a:1;b:2")

    @broker.subscriber("orders", group="billing")
    @broker.publisher("bills")
    async def bill(order: Order) -> Order:
        return order

    described = AsyncAPI(broker).to_specification().to_jsonable()
    assert {channel["address"] for channel in described["channels"].values()} == {"orders", "bills"}
    assert described["components"]["schemas"]["Order"]["required"] == ["id"]
    assert next(iter(described["servers"].values()))["protocol"] == "rocketmq"


async def test_batches_are_tested_without_a_broker() -> None:
    broker = GantryBroker()
    seen: list[Any] = []

    @broker.subscriber("readings", group="sums", batch=True)
    @broker.publisher("halves", batch=True)
    async def add(numbers: list[int], message: GantryBatchMessage) -> list[int]:
        seen.append((numbers, len(message.raw_message), [headers["unit"] for headers in message.batch_headers]))
        return [number // 2 for number in numbers]

    @broker.subscriber("halves", group="each")
    async def each(number: int) -> None:
        seen.append(number)

    quiet = broker.publisher("unheard", batch=True)
    async with TestGantryBroker(broker) as test:
        await test.publish_batch(2, 4, topic="readings", headers={"unit": "m"})
        assert seen == [([2, 4], 2, ["m", "m"]), 1, 2]
        await test.publish(8, "readings", headers={"unit": "s"})
        assert seen[3:] == [([8], 1, ["s"]), 4]
        await quiet.publish("a", "b")
        assert quiet.mock is not None
        quiet.mock.assert_called_once_with(["a", "b"])
        with pytest.raises(MessageRejected, match="at least one"):
            await test.publish_batch(topic="readings")


async def test_batches_travel_as_one_request_and_fail_together(tmp_path: Path) -> None:
    calls: list[tuple[list[int], int]] = []
    async with serving(tmp_path, store={"delay_levels": " ".join(["1s"] * 18)}) as cluster:
        broker = GantryBroker(cluster.namesrv_address)

        @broker.subscriber("readings", group="sums", batch=True, max_records=8, consume_from=FIRST)
        @broker.publisher("sums", batch=True, headers={"from": "sums"})
        async def add(numbers: list[int], message: GantryBatchMessage) -> list[int]:
            calls.append((numbers, message.raw_message[0].tries))
            if len(numbers) > 1 and message.raw_message[0].tries == 1:
                raise LookupError("not yet")
            return numbers

        app = FastStream(broker)
        await broker.connect()
        result = await broker.publish_batch(*range(6), topic="readings", sharding_key="k", keys="sensor")
        assert result.queue == (await broker.publish_batch(6, topic="readings", sharding_key="k")).queue
        await app.start()
        try:
            await until(
                lambda: sorted(number for numbers, tries in calls if tries == 2 for number in numbers) == [*range(7)]
            )
            await until(lambda: sum(cluster.broker.store.max_offset("sums", queue) for queue in range(4)) == 7)
        finally:
            await app.stop()
    assert calls[0] == ([*range(7)], 1)


async def test_a_subscriber_without_handlers_is_asked_for_messages(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        broker = GantryBroker(cluster.namesrv_address)
        one = broker.subscriber("jobs", group="one", consume_from=FIRST)
        many = broker.subscriber("jobs", group="many", batch=True, max_records=5, consume_from=FIRST)
        with pytest.raises(IncorrectState, match="not started"):
            await one.get_one()
        await broker.connect()
        await broker.publish_batch(*({"job": number} for number in range(5)), topic="jobs", headers={"for": "us"})
        async with broker:
            await broker.start()
            first = await one.get_one(timeout=WITHIN_S)
            assert (await first.decode(), first.headers["for"]) == ({"job": 0}, "us")
            await first.nack()
            again = await one.get_one(timeout=WITHIN_S)
            assert await again.decode() == {"job": 0}, "it comes again"
            seen = []
            async for message in one:
                seen.append((await message.decode())["job"])
                if len(seen) == 3:
                    await message.ack()
                    break
            assert seen == [1, 2, 3]
            batch = await many.get_one(timeout=WITHIN_S)
            assert [job["job"] for job in await batch.decode()] == [*range(5)]
            await batch.ack()
            assert await many.get_one(timeout=0.01) is None
        async with GantryBroker(cluster.namesrv_address) as later:
            left = later.subscriber("jobs", group="one", consume_from=FIRST)
            async with left:
                rest = await left.get_one(timeout=WITHIN_S)
                assert await rest.decode() == {"job": 4}, "what was acknowledged at the end is finished"
            async with later.subscriber("jobs", group="one", consume_from=FIRST) as once_more:
                rest = await once_more.get_one(timeout=WITHIN_S)
                assert await rest.decode() == {"job": 4}, "what was not comes again"


async def test_what_single_messages_and_batches_can_not_be_is_said(tmp_path: Path) -> None:
    broker = GantryBroker(closed_port())

    @broker.subscriber("orders", group="handled")
    async def listen(body: bytes) -> None: ...

    with pytest.raises(SetupError, match="batch=True"):
        broker.subscriber("orders", group="g", max_records=3)
    await broker.connect()
    with pytest.raises(SetupError, match="concurrency is for a subscriber with handlers"):
        await broker.subscriber("orders", group="asked", concurrency=3).start()
    (handled,) = (each for each in broker.subscribers if each.calls)
    with pytest.raises(IncorrectState, match="takes one without"):
        await handled.get_one()
    with pytest.raises(FeatureNotSupportedException, match="one message"):
        await broker.publisher("orders", batch=True).request("what")
    await broker.stop()
