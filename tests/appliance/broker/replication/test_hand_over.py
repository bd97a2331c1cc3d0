"""A master that has handed over takes nothing, until the slave says that it has not taken over or a person decides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance.broker.epochs.standing import HandedTo
from appliance.broker.replication.master.hand_over import has_not_begun
from appliance.broker.replication.slave_synchronize import SlaveSynchronize
from appliance.errors import BrokerError
from gantrymq.errors import ConnectError
from tests.appliance.broker.replication.brokers import copied_pair, group, is_master, is_slave, promote, same_logs, send
from tests.appliance.broker.replication.pair import follower_of
from tests.appliance.broker.replication.rivals.parted import refuses_sends
from tests.appliance.cli.running_gantry import run_gantry
from tests.waiting import until

AWAY = HandedTo(2, "127.0.0.1:9")  # nobody answers there
SLAVE = {"brokerRole": "SLAVE", "epochId": "own", "epochHighest": "1", "mayBeginEpoch": "false"}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, True),
        ({"mayBeginEpoch": "true"}, False),
        ({"epochHighest": "2"}, False),
        ({"brokerRole": "ASYNC_MASTER"}, False),
        ({"epochId": "another"}, False),  # another broker is at its address
        ({"epochHighest": "0", "epochId": "none"}, False),
    ],
)
def test_only_a_slave_of_this_log_that_has_not_begun_the_epoch_gives_it_back(
    told: dict[str, str], expected: bool
) -> None:
    assert has_not_begun(SLAVE | told, HandedTo(2, "two"), "own") is expected
    assert not has_not_begun({}, HandedTo(2, "two"), "own"), "no answer is none"


async def test_a_master_hands_over_only_while_it_holds_back_and_to_one_that_has_all(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers, copied_pair(brokers, 10) as (one, two):
        await until(lambda: follower_of(two.controller).sink.has_tables)
        refused = await promote(two, planned="true")
        assert refused.code == 1 and "it does not hold back messages" in (refused.remark or "")
        master, end = one.controller, one.controller.store.max_physical_offset
        master.holding.begin(60)
        for to, at, why in (
            (HandedTo(2, two.controller.address), end - 1, "does not hold back"),
            (HandedTo(1, two.controller.address), end, "epoch 1 is known here"),
            (AWAY, end, "has not said that it has all"),
        ):
            with pytest.raises(BrokerError, match=why):
                await master.hand_over.give(to, at)
        assert master.standing.standing.handed_to is None
        answer = await promote(two, planned="true")
        assert answer.code == 0, answer.remark
        await until(lambda: is_master(two) and is_slave(one))
        assert one.controller.standing.standing.handed_to is None
        await send(two, 5)
        await same_logs(one, two)


async def test_a_slave_without_the_answer_gives_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master has handed over, and the slave does not hear of it: it stays one, and the master goes on by itself."""
    take_over = SlaveSynchronize.take_over

    async def unheard(synchronize: SlaveSynchronize, own_address: str, end: int, epoch: int) -> None:
        await take_over(synchronize, own_address, end, epoch)
        assert one.controller.standing.standing.handed_to == HandedTo(epoch, own_address)
        one.controller.holding.end()  # the tool, or time
        assert await refuses_sends(one)
        raise ConnectError(own_address, "lost")

    async with group(tmp_path) as brokers, copied_pair(brokers, 10) as (one, two):
        await until(lambda: follower_of(two.controller).sink.has_tables)
        one.controller.holding.begin(60)
        monkeypatch.setattr(SlaveSynchronize, "take_over", unheard)
        answer = await promote(two, planned="true")
        assert answer.code == 1 and "its master does not give up its role" in (answer.remark or "")
        await until(lambda: one.controller.standing.standing.handed_to is None)
        await send(one, 5)
        await same_logs(one, two)
        assert is_slave(two) and two.controller.standing.standing.epochs.highest == 1


async def test_a_person_decides_when_the_slave_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with group(tmp_path) as brokers:
        async with brokers.broker("one") as one:
            await send(one, 10)
            one.controller.standing.change(handed_to=AWAY)
        async with brokers.broker("one") as one:  # a restart changes nothing
            assert await refuses_sends(one)
            with pytest.raises(BrokerError, match="it has given up its role to"):
                await one.controller.hand_over.give(HandedTo(2, "127.0.0.1:10"), 0)
            words = ("admin", "-n", brokers.namesrv_address)
            seen = await asyncio.to_thread(run_gantry, capsys, *words, "cluster")
            assert f"gave up its role to {AWAY.address} for epoch 2" in seen.out
            keep = ("settle", "broker-a", "--keep", one.controller.address, "--yes")
            ran = await asyncio.to_thread(run_gantry, capsys, *words, *keep)
            assert ran.code == 0, ran.err
            assert one.controller.standing.standing.epochs.current == 3, "above the one that it has handed over"
            await send(one, 5)
