"""What is in flight, as people see it, and what becomes of it when they move the group."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from gantrymq import AdminClient
from gantrymq.remoting.codes import RequestCode
from tests.appliance.broker.pop.scene import bodies, offset_of, scene
from tests.waiting import until


async def test_what_is_in_flight_is_told_with_who_has_it_and_how_often_it_came(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        await popper.send(b"second", queue_id=1, UNIQ_KEY="id-2")
        await popper.pop(clientId="me@1", invisibleTime=30)
        await until(lambda: broker.pop.book.count == 0)  # both are in the retry topic
        retried = await popper.pop(clientId="me@2")
        found = await admin.groups.leases_at(popper.address, "g")
        assert (found.modes, found.total, len(found.leases)) == ({"orders": "POP"}, 2, 2)
        assert {(one.topic, one.client, one.deliveries, one.is_ordered) for one in found.leases} == {
            ("%RETRY%g_orders", "me@2", 2, False)
        }
        assert "id-2" in {one.message_id for one in found.leases}
        assert all(59_000 < one.due_at - one.popped_at <= 60_000 for one in found.leases)
        assert len((await admin.groups.leases_at(popper.address, "g", 1)).leases) == 1
        assert await popper.ack_all(retried) == 0
        assert (await admin.groups.leases_at(popper.address, "g")).total == 0
        assert (await admin.groups.leases_at(popper.address, "no-such")).modes == {}


async def test_the_lag_is_what_is_ready_and_what_is_in_flight(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        for number in range(1, 10):
            await popper.send(b"%d" % number)

        async def place() -> tuple[int | None, int, int, int | None]:
            progress = await admin.offsets.progress("g", "orders")
            one = next(each for each in progress.queues if each.queue.queue_id == 0)
            return one.lag, one.in_flight, one.done_ahead, one.consumer_offset

        out = await popper.pop(maxMsgNums=6)
        assert await place() == (10, 6, 0, 0)
        for each in out[1:5]:
            assert await popper.ack(each) == 0
        assert await place() == (6, 2, 4, 0), "the oldest one is out, and four behind it are done with"
        assert await popper.ack(out[0]) == 0
        assert await place() == (5, 1, 0, 5)
        broker.offsets.commit("g", "orders", 0, 2)  # set by an administrator: what was out is void
        assert await place() == (8, 0, 0, 2)


async def test_the_oldest_lease_of_a_queue_is_told_until_it_ends(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        await popper.send(b"1")

        async def age_ms() -> int:
            stats = await admin.offsets.stats_at(popper.address, "g", "orders")
            return max(place.oldest_lease_ms for place in stats.offset_table.values())

        await popper.pop(maxMsgNums=1, invisibleTime=60_000)
        (second,) = await popper.pop(maxMsgNums=1)
        await until(lambda: time.time() * 1000 - int(second.handle.split(" ")[1]) > 50)
        assert await age_ms() > 50
        assert await popper.ack(second) == 0
        assert await age_ms() > 50, "the first one is out"


async def test_what_waits_to_be_tried_again_counts_before_anyone_pops_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as (broker, popper), AdminClient(broker.config.namesrv_addresses) as admin:
        await popper.pop(invisibleTime=30)
        await until(lambda: broker.pop.book.redelivered.total() == 1 and broker.pop.book.count == 0)
        assert (await admin.offsets.progress("g")).lag == 1


async def test_a_reset_moves_a_group_that_pops_and_voids_what_is_out(tmp_path: Path) -> None:
    """222, which pull consumers would carry out themselves: back to the begin, then to the end."""
    async with scene(tmp_path) as (broker, popper):
        await popper.send(b"second")
        first, second = await popper.pop()
        assert await popper.ack(first) == 0
        reset = {"topic": "orders", "group": "g", "timestamp": 0, "isForce": "true"}
        waiting = asyncio.create_task(popper.pop(pollTime=30_000, bornTime=int(time.time() * 1000)))
        await until(lambda: broker.pop.hold.count == 1)
        assert (await popper.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)).code == 0
        assert bodies(await waiting) == [b"first", b"second"], "a pop that waited is woken"
        assert await popper.ack(second) != 0, "its lease is void"
        assert (await popper.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset | {"timestamp": -1})).code == 0
        assert (offset_of(broker), broker.pop.book.count, await popper.pop()) == (2, 0, [])
