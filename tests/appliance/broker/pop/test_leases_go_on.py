"""What POP has out is out at the promoted slave: acknowledged there, delivered to no other member meanwhile."""

from __future__ import annotations

import contextlib
from pathlib import Path

from gantrymq.remoting.pop_bodies import SetModeRequest
from tests.appliance.broker.pop.popper import popping
from tests.appliance.broker.replication.brokers import group, is_master, promote, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC
from tests.waiting import until


async def test_leases_and_modes_go_on_at_the_new_master(tmp_path: Path) -> None:
    async with (
        group(tmp_path) as brokers,
        brokers.broker("two", broker_id=1) as two,
        contextlib.AsyncExitStack() as first,
    ):
        one = await first.enter_async_context(brokers.broker("one"))
        await send(one, 3, b"x")
        async with popping(one.controller.address, topic=TOPIC) as popper:
            out = await popper.pop(maxMsgNums=2)
            assert await popper.ack(out[0]) == 0
            body = SetModeRequest(TOPIC, "g", "POP").to_json()
            assert (await popper.ask(401, {}, body)).code == 0
        theirs, mine = one.controller.pop.book, two.controller.pop.book
        await until(lambda: mine.count == 1 and bool(two.controller.pop.modes.table))
        assert [mine.snapshot(key) for key in mine.queues] == [theirs.snapshot(key) for key in theirs.queues]
        await same_logs(one, two)
        await first.aclose()
        assert (await promote(two)).code == 0
        await until(lambda: is_master(two))
        assert two.controller.pop.modes.get(TOPIC, "g") is not None
        async with popping(two.controller.address, topic=TOPIC) as popper:
            (last,) = await popper.pop()
            assert last.message.queue_offset == 2, "the one that is out goes to no other member"
            assert await popper.ack(out[1]) == 0
            assert await popper.ack(last) == 0
        assert two.controller.offsets.query("g", TOPIC, last.message.queue_id) == 3


async def test_what_ended_while_a_slave_was_away_is_not_delivered_again_by_it(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers, contextlib.AsyncExitStack() as first:
        one = await first.enter_async_context(brokers.broker("one"))
        await send(one, 3, b"x")
        async with popping(one.controller.address, topic=TOPIC) as popper:
            async with brokers.broker("two", broker_id=1) as two:
                out = await popper.pop(maxMsgNums=2)
                await until(lambda: two.controller.pop.book.count == 2)
            assert await popper.ack_all([*out, *await popper.pop()]) == 0
        async with brokers.broker("two", broker_id=1) as two:
            queue_id = out[0].message.queue_id
            await same_logs(one, two)
            await until(lambda: two.controller.offsets.query("g", TOPIC, queue_id) == 3)
            left = two.controller.pop.book.count
            await first.aclose()
            assert (await promote(two)).code == 0
            await until(lambda: is_master(two))
            assert (left, two.controller.offsets.query("g", TOPIC, queue_id)) == (0, 3)


async def test_a_batch_in_order_whose_answer_was_lost_is_given_to_the_same_attempt_at_the_new_master(
    tmp_path: Path,
) -> None:
    async with (
        group(tmp_path) as brokers,
        brokers.broker("two", broker_id=1) as two,
        contextlib.AsyncExitStack() as first,
    ):
        one = await first.enter_async_context(brokers.broker("one"))
        await send(one, 2, b"x")
        async with popping(one.controller.address, topic=TOPIC) as popper:
            lost = await popper.pop(maxMsgNums=1, order="true", attemptId="first")
        await until(lambda: two.controller.pop.book.count == 1)
        await same_logs(one, two)
        await first.aclose()
        assert (await promote(two)).code == 0
        await until(lambda: is_master(two))
        async with popping(two.controller.address, topic=TOPIC) as popper:
            assert await popper.pop(order="true", attemptId="another member's") == []
            (again,) = await popper.pop(maxMsgNums=1, order="true", attemptId="first")
            assert again.body == lost[0].body
            assert await popper.ack(again) == 0
            assert len(await popper.pop(order="true", attemptId="another member's")) == 1
