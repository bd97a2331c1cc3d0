"""What a consumer waits for comes from the promoted slave: retries, delays, and what its SQL condition matches."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from gantrymq import ConsumeFrom, ConsumeResult, PushConsumer
from gantrymq.message import properties as names
from gantrymq.message.model import MessageExt
from gantrymq.message.topics import SCHEDULE_TOPIC
from tests.appliance.broker.replication.brokers import group, is_master, promote, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC, follower_of
from tests.waiting import until

SETTINGS: dict[str, Any] = {
    "enable_property_filter": True,
    "calc_filter_bitmap_enable": True,
    "store": {"delay_levels": "1s 1s 4s", "consume_queue_ext_enable": True},
}
FAILS_ONCE, DELAYED = b"fails once", b"delayed"
LEVEL = "3"  # also that of a first retry


def sized(size: int, **more: str) -> str:
    return names.encode_properties({"size": str(size), **more})


async def test_retries_delays_and_sql_filters_go_on_at_the_new_master(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        seen.extend(message.body for message in messages)
        has_failed = any(message.body == FAILS_ONCE and not message.reconsume_times for message in messages)
        return ConsumeResult.LATER if has_failed else ConsumeResult.SUCCESS

    async with (
        group(tmp_path) as brokers,
        brokers.broker("two", broker_id=1, **SETTINGS) as two,
        contextlib.AsyncExitStack() as first,
    ):
        one = await first.enter_async_context(brokers.broker("one", **SETTINGS))
        await send(one, 1, FAILS_ONCE, properties=sized(9))
        consumer = PushConsumer(
            brokers.namesrv_address, group="Readers", listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
        )
        consumer.subscribe(TOPIC, sql="size > 5")
        async with consumer:
            await until(lambda: FAILS_ONCE in seen)
            await send(one, 1, b"too small", properties=sized(1))
            await send(one, 1, DELAYED, properties=sized(9, DELAY=LEVEL))
            waiting = int(LEVEL) - 1
            await until(lambda: one.controller.store.max_offset(SCHEDULE_TOPIC, waiting) == 2)
            before, sink = follower_of(two.controller).sink.taken_at, follower_of(two.controller).sink
            await until(lambda: sink.taken_at > before)
            await same_logs(one, two)
            await first.aclose()
            answer = await promote(two)
            assert answer.code == 0, answer.remark
            await until(lambda: is_master(two))
            await send(two, 1, b"still too small", properties=sized(2))
            await send(two, 1, b"after", properties=sized(9))
            await until(lambda: {DELAYED, b"after"} <= set(seen) and seen.count(FAILS_ONCE) > 1)
        assert set(seen) == {FAILS_ONCE, DELAYED, b"after"}
        assert two.controller.store.max_offset(TOPIC, 0) >= 5, "what the condition left out is there, too"
