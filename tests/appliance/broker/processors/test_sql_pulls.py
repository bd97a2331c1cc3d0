"""SQL92 over the wire: heartbeats, pulls, waiting pulls, filter bits, refusals, and what 321 tells of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.filters import filter as filters
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.message.record import decode_records
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, SubscriptionData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool
from tests.appliance.peer import Peer, connected
from tests.harness import serving
from tests.waiting import until

WITH_BITS = {"broker": {"calc_filter_bitmap_enable": True}, "store": {"consume_queue_ext_enable": True}}


@contextlib.asynccontextmanager
async def tool_at(folder: Path, **settings: Any) -> AsyncIterator[Tool]:
    async with serving(folder, **settings) as cluster, connected(cluster.broker.port) as peer:
        yield Tool(cluster, peer)


@contextlib.asynccontextmanager
async def consumer(tool: Tool, text: str, *, group: str = "g", version: int = 1) -> AsyncIterator[Peer]:
    """A consumer of "orders" that has said hello."""
    async with connected(tool.broker.port) as peer:
        assert await hello(peer, text, group=group, version=version) == 0
        yield peer


async def hello(
    peer: Peer, text: str, *, group: str = "g", version: int = 1, topic: str = "orders", extra: Iterable[Any] = ()
) -> int:
    wanted = SubscriptionData(topic, text, sub_version=version, expression_type="SQL92")
    beat = HeartbeatData("10.0.0.1@c", [], [ConsumerData(group, subscription_data_set=[wanted, *extra])])
    peer.write(RemotingCommand.request(RequestCode.HEART_BEAT, None, beat.to_json()).encode())
    return (await read_answer(peer)).code


def pull_request(offset: int = 0, **changes: str) -> RemotingCommand:
    fields = {
        "consumerGroup": "g",
        "topic": "orders",
        "queueId": "0",
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": "0",
        "commitOffset": "0",
        "suspendTimeoutMillis": "60000",
        "subVersion": "1",
        "expressionType": "SQL92",
    }
    return RemotingCommand.request(RequestCode.PULL_MESSAGE, fields | changes)


async def pull(peer: Peer, offset: int = 0, **changes: str) -> RemotingCommand:
    peer.write(pull_request(offset, **changes).encode())
    return await read_answer(peer)


async def read_answer(peer: Peer) -> RemotingCommand:
    """Read past notices of the group's change."""
    while True:
        answer = await peer.read()
        if answer.is_response:
            return answer


def bodies(answer: RemotingCommand) -> list[bytes]:
    return [message.body for message in decode_records(answer.body)]


async def send_prices(tool: Tool, *prices: object) -> None:
    for price in prices:
        await tool.send("orders", str(price).encode(), price=str(price))


async def send_batch(tool: Tool, *prices: int) -> None:
    messages = [Message("orders", str(price).encode(), properties={"price": str(price)}) for price in prices]
    fields = {"a": "PG", "b": "orders", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "m": "true"}
    fields |= {"i": "", "j": "0", "k": "false"}
    assert (await tool.ask(RequestCode.SEND_BATCH_MESSAGE, fields, encode_batch(messages))).code == 0


# -- choosing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, WITH_BITS])
async def test_a_pull_gets_what_meets_its_groups_condition(tmp_path: Path, settings: dict[str, Any]) -> None:
    async with tool_at(tmp_path, **settings) as tool, consumer(tool, "price BETWEEN 10 AND 20") as peer:
        await asyncio.sleep(0.002)  # the condition is older than the messages, by a millisecond
        await send_prices(tool, 5, 10, "x", 15, 25, 20)
        answer = await pull(peer)
        assert bodies(answer) == [b"10", b"15", b"20"]
        assert answer.ext_fields["nextBeginOffset"] == "6"
        answer = await pull(peer, 4)
        assert (bodies(answer), answer.ext_fields["nextBeginOffset"]) == ([b"20"], "6")


async def test_where_nothing_matches_the_client_goes_on_behind(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, consumer(tool, "price > 100") as peer:
        await send_prices(tool, 1, 2, 3)
        answer = await pull(peer)
        assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert (answer.remark, answer.ext_fields["nextBeginOffset"]) == ("NO_MATCHED_MESSAGE", "3")


async def test_one_pull_looks_into_so_many_messages_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "RECORDS_MAX", 10)
    async with tool_at(tmp_path) as tool, consumer(tool, "price = 99") as peer:
        await send_prices(tool, *range(12), 99)
        answer = await pull(peer)
        assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "10")
        assert bodies(await pull(peer, 10)) == [b"99"]


async def test_a_pull_may_bring_its_own_condition(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        await tool.create_topic("orders")
        await send_prices(tool, 1, 2, 3)
        answer = await pull(tool.peer, sysFlag="4", subscription="price <> 2", subVersion="0")
        assert bodies(answer) == [b"1", b"3"]


# -- waiting ----------------------------------------------------------------------------------------------------------


async def test_a_waiting_pull_wakes_for_what_matches_only(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, consumer(tool, "price > 10") as peer:
        await send_prices(tool, 1)
        request = pull_request(1, sysFlag="2")
        peer.write(request.encode())
        await until(lambda: bool(tool.broker.hold.held_count))
        await send_prices(tool, 2, 3, "x")
        assert tool.broker.hold.held_count == 1
        await send_batch(tool, 4, 5)
        assert tool.broker.hold.held_count == 1
        await send_batch(tool, 6, 12, 7)
        answer = await read_answer(peer)
        assert answer.opaque == request.opaque
        assert bodies(answer) == [b"12"]


async def test_a_waiting_pull_is_answered_when_its_time_is_up(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, consumer(tool, "price > 10") as peer:
        await send_prices(tool, 1)
        peer.write(pull_request(1, sysFlag="2").encode())
        await until(lambda: bool(tool.broker.hold.held_count))
        await send_prices(tool, 2)
        tool.broker.hold.sweep(time.monotonic() + 60)  # the broker's own look comes once a second
        answer = await read_answer(peer)
        assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert answer.ext_fields["nextBeginOffset"] == "2"


# -- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_group_whose_condition_is_none_is_told_at_each_pull(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, consumer(tool, "price >") as peer:
        await send_prices(tool, 1)
        answer = await pull(peer)
        assert answer.code == ResponseCode.FILTER_DATA_NOT_EXIST
        assert "expression may be wrong" in (answer.remark or "")


async def test_a_broker_that_has_not_heard_of_the_newest_subscription_says_so(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, consumer(tool, "price > 1", version=5) as peer:
        await send_prices(tool, 1, 2)
        assert (await pull(peer, subVersion="6")).code == ResponseCode.SUBSCRIPTION_NOT_LATEST
        assert bodies(await pull(peer, subVersion="5")) == [b"2"]
        tool.broker.filters.by_topic["orders"]["g"].client_version = 4
        assert (await pull(peer, subVersion="5")).code == ResponseCode.FILTER_DATA_NOT_LATEST


async def test_a_broker_without_property_filters_says_so(tmp_path: Path) -> None:
    async with tool_at(tmp_path, broker={"enable_property_filter": False}) as tool, consumer(tool, "price > 1") as peer:
        await send_prices(tool, 2)
        answer = await pull(peer)
        assert (answer.code, "enablePropertyFilter" in (answer.remark or "")) == (ResponseCode.SYSTEM_ERROR, True)
        answer = await pull(peer, sysFlag="4", subscription="price > 1")
        assert answer.code == ResponseCode.SYSTEM_ERROR


async def test_a_group_that_left_keeps_its_condition_as_dead(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool:
        async with consumer(tool, "price > 1"):
            assert not tool.broker.filters.by_topic["orders"]["g"].is_dead
        await until(lambda: tool.broker.filters.by_topic["orders"]["g"].is_dead)


# -- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("is_filtered", "expected"), [(False, [b"1", b"2"]), (True, [b"2"])])
async def test_messages_that_return_are_filtered_again_if_that_is_wanted(
    tmp_path: Path, is_filtered: bool, expected: list[bytes]
) -> None:
    retry = SubscriptionData("%RETRY%g", "*", sub_version=1)
    async with (
        tool_at(tmp_path, broker={"filter_support_retry": is_filtered}) as tool,
        connected(tool.broker.port) as peer,
    ):
        await hello(peer, "price > 1", extra=[retry])
        for price in (1, 2):
            await tool.send("%RETRY%g", str(price).encode(), price=str(price), RETRY_TOPIC="orders")
        answer = await pull(peer, topic="%RETRY%g", expressionType="TAG")
        assert bodies(answer) == expected


# -- bits -------------------------------------------------------------------------------------------------------------


async def test_bits_spare_looking_into_messages(tmp_path: Path) -> None:
    async with tool_at(tmp_path, **WITH_BITS) as tool, consumer(tool, "price > 10") as peer:
        await asyncio.sleep(0.002)
        await send_prices(tool, 1, 2, 11, 3)
        asked = tool.broker.filters.by_topic["orders"]["g"].content_filter
        looked: list[bytes] = []
        asked_matches = type(asked).matches

        def counting(self: Any, properties: bytes) -> bool:
            looked.append(properties)
            return asked_matches(self, properties)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(asked), "matches", counting)
            assert bodies(await pull(peer)) == [b"11"]
        assert len(looked) == 1


async def test_bits_are_made_again_by_recovery(tmp_path: Path) -> None:
    async with tool_at(tmp_path, **WITH_BITS) as tool, consumer(tool, "price > 10") as peer:
        await asyncio.sleep(0.002)
        await send_prices(tool, 1, 11)
        await pull(peer)
        before = [unit.bitmap for unit in extended(tool, 2)]
    assert [sum(byte.bit_count() for byte in bitmap) for bitmap in before] == [0, 3]
    for path in (tmp_path / "store").glob("consumequeue*"):
        path.rename(tmp_path / f"lost-{path.name}")
    (tmp_path / "store" / "abort").touch()
    async with tool_at(tmp_path, **WITH_BITS) as tool:
        assert [unit.bitmap for unit in extended(tool, 2)] == before


def extended(tool: Tool, count: int) -> list[Any]:
    store = tool.broker.store
    units = [store.consume_queue_units("orders", 0, index, 1)[0] for index in range(count)]
    return [store.extended_unit("orders", 0, unit.tags_code) for unit in units]


# -- 321 --------------------------------------------------------------------------------------------------------------


async def test_321_shows_condition_bits_and_what_they_say(tmp_path: Path) -> None:
    async with tool_at(tmp_path, **WITH_BITS) as tool, consumer(tool, "price > 10"):
        await asyncio.sleep(0.002)
        await send_prices(tool, 1, 11)
        fields = {"topic": "orders", "queueId": "0", "index": "0", "count": "5", "consumerGroup": "g"}
        answer = await tool.ask(RequestCode.QUERY_CONSUME_QUEUE, fields)
        body = json.loads(answer.body)
        assert json.loads(body["filterData"])["expression"] == "price > 10"
        assert [unit["eval"] for unit in body["queueData"]] == [False, True]
        assert [unit["bitMap"].count("1") for unit in body["queueData"]] == [0, 3]
        assert json.loads(body["queueData"][1]["extendDataJson"])["size"] == 34
