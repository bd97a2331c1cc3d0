"""kill -9 of a broker amid pops and acknowledgements: nothing is lost, and what was acknowledged stays so.

pytest tests/faults/pop --rounds 50
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path

import pytest

from appliance.bench import rpc
from gantrymq.errors import GantryError
from tests.appliance.broker.pop.popper import Popper, popping
from tests.harness import LocalCluster

QUEUES, MESSAGES_A_ROUND = 3, 40
INVISIBLE_MS = 1500


class Group:
    """Two members of a group, and what the broker has confirmed to them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.sent: set[bytes] = set()
        self.acknowledged: Counter[bytes] = Counter()
        self.maybe: set[bytes] = set()  # an acknowledgement is under way, or its answer was lost
        self.after_its_end: list[bytes] = []  # delivered though an acknowledgement had been confirmed

    async def send(self, popper: Popper, first: int) -> None:
        for number in range(first, first + MESSAGES_A_ROUND):
            await popper.send(b"%d" % number, queue_id=number % QUEUES)
            self.sent.add(b"%d" % number)

    async def consume(self, popper: Popper) -> None:
        """Pop and acknowledge most until the connection is gone."""
        with contextlib.suppress(GantryError, AssertionError):
            while True:
                for each in await popper.pop(maxMsgNums=4, invisibleTime=INVISIBLE_MS, pollTime=200):
                    if self.acknowledged[each.body]:
                        self.after_its_end.append(each.body)
                    if self._chance.random() < 0.8:
                        self.maybe.add(each.body)
                        if await popper.ack(each) == 0:
                            self.acknowledged[each.body] += 1
                        self.maybe.discard(each.body)

    @property
    def is_done(self) -> bool:
        return self.acknowledged.keys() | self.maybe >= self.sent


@pytest.mark.timeout(3600)
async def test_a_killed_broker_loses_no_message_and_keeps_acknowledgements(
    tmp_path: Path, rounds: int, seed: int
) -> None:
    chance = random.Random(seed)
    group = Group(chance)
    with LocalCluster(tmp_path) as cluster:
        rpc.create_topic(cluster.broker_address, "orders", QUEUES)
        for number in range(max(rounds // 3, 3)):
            async with popping(cluster.broker_address) as one, popping(cluster.broker_address) as other:
                await group.send(one, number * MESSAGES_A_ROUND)
                members = [asyncio.create_task(group.consume(each)) for each in (one, other)]
                await asyncio.sleep(chance.random() / 2)  # the dice say when it dies
                cluster.kill_broker()
                await asyncio.gather(*members)
            cluster.start_broker()
        async with asyncio.timeout(120), popping(cluster.broker_address) as one:
            while not group.is_done:
                task = asyncio.create_task(group.consume(one))
                await asyncio.sleep(0.5)  # it pops until it is cancelled: time has to pass
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        assert group.is_done
    assert group.after_its_end == [], "an acknowledgement that was confirmed outlives the process"
