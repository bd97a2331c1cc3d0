"""What brokers tell of failover: who is the master, who would be the next one, and who has paused it."""

from __future__ import annotations

import dataclasses

import pytest

from appliance.broker.failover.told import SILENT, UNSURE, status_of
from appliance.broker.life import BrokerLife
from appliance.failover.view import Figures, Holder, Pause, TermState
from appliance.register.room import Trouble
from appliance.register.term import IN_SYNC, LOCAL, Change, Term, View
from gantrymq import AdminClient
from gantrymq.client.admin.failover import FailoverStatus
from gantrymq.errors import ResponseError
from gantrymq.timeouts import timeout
from store.base.config import INT_MAX
from tests.appliance.broker.failover.automatic import LEASE_S, begun, member
from tests.appliance.broker.replication.brokers import is_master, is_slave
from tests.appliance.broker.replication.recorded import OnRecord, takes_messages
from tests.waiting import WITHIN_S, until

ONE, TWO, THREE = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"
TERM = Term(3, "id", ONE, (ONE, TWO, THREE), IN_SYNC, {ONE: Holder(1, "a"), TWO: Holder(2, "b"), THREE: Holder(3, "c")})
VIEW = View(
    TERM,
    7,
    history=(Change(2, "x", TWO, 0, "init", 1_000), Change(3, "id", ONE, 500, "switchover", 2_000, out_ms=300)),
    stores={"s1": 1, "s2": 2, "s3": 3},
)
TOLD = FailoverStatus("broker-a", ONE, is_automatic=True, lease_s=5.0)


def figures(address: str, end: int, *, priority: int = 0, refusal: str = "") -> Figures:
    return Figures(address, "b", 3, end, end, is_healthy=True, priority=priority, refusal=refusal)


def test_the_member_with_the_longest_log_would_be_the_next_master() -> None:
    told = status_of(TOLD, VIEW, {2: figures(TWO, 90), 3: figures(THREE, 95)})
    assert (told.next_master, told.next_in_s, told.why_none) == (THREE, 6.0, "")
    assert (told.since_ms, [each.epoch for each in told.changes], told.changes[0].out_ms) == (2_000, [3, 2], 300)


def test_of_equal_logs_the_priority_decides_and_then_the_lower_id() -> None:
    equal = {2: figures(TWO, 90), 3: figures(THREE, 90)}
    assert status_of(TOLD, VIEW, equal).next_master == TWO
    assert status_of(TOLD, VIEW, {**equal, 3: figures(THREE, 90, priority=-1)}).next_master == THREE


def test_a_member_that_refuses_or_is_silent_would_not_be_the_next_and_its_reason_is_told() -> None:
    told = status_of(TOLD, VIEW, {2: figures(TWO, 90, refusal="the disk of member 2 does not write")})
    assert told.next_master == ""
    assert told.why_none == f"member 2 ({TWO}): the disk of member 2 does not write; member 3 ({THREE}): {SILENT}"


def test_a_member_out_of_the_set_would_not_be_the_next_whatever_it_told_before() -> None:
    """It was stopped, say, and the set is smaller since: its last word is not ten seconds old."""
    view = dataclasses.replace(VIEW, term=dataclasses.replace(TERM, in_sync=(ONE,)))
    told = status_of(TOLD, view, {2: figures(TWO, 90), 3: figures(THREE, 90, refusal="its disk is broken")})
    assert told.next_master == ""
    assert [each.refusal for each in told.members] == [
        "",
        "member 2 is not in sync: epoch 3 has 1 on record",
        "its disk is broken",
    ]


def test_whether_a_member_could_is_not_known_before_it_was_seen_to_say_so() -> None:
    """That it is not in the set is known."""
    equal = {2: figures(TWO, 90), 3: figures(THREE, 90)}
    view = dataclasses.replace(VIEW, term=dataclasses.replace(TERM, in_sync=(ONE, TWO)))
    told = status_of(TOLD, view, equal, unsure={2, 3})
    assert (told.next_master, told.members[1].refusal) == ("", UNSURE)
    assert told.members[2].refusal == "member 3 is not in sync: epoch 3 has 1, 2 on record"
    assert not any(each.has_told for each in told.members)
    assert status_of(TOLD, view, equal, unsure={3}).next_master == TWO


def test_while_etcd_refuses_changes_no_member_would_be_the_next() -> None:
    equal = {2: figures(TWO, 90), 3: figures(THREE, 90)}
    told = status_of(TOLD, VIEW, equal, Trouble("etcd's database is full", is_refusing=True))
    assert (told.next_master, told.why_none, told.etcd_trouble) == ("", *("etcd's database is full",) * 2)
    assert status_of(TOLD, VIEW, equal, Trouble("nobody compacts it")).next_master == TWO


def test_a_master_that_has_not_begun_its_epoch_is_told_with_its_reason() -> None:
    """Once it serves, it says no reason: what it said as a slave is over."""
    for state, level, refusal in (
        (TermState.OPENING, IN_SYNC, "has restarted"),
        (TermState.RELEASED, LOCAL, "has restarted"),
        (TermState.RELEASED, IN_SYNC, ""),
        (TermState.OPEN, IN_SYNC, ""),
    ):
        assert VIEW.term is not None
        view = dataclasses.replace(VIEW, term=dataclasses.replace(VIEW.term, state=state, level=level))
        told = status_of(TOLD, view, {1: figures(ONE, 90, refusal="has restarted")})
        assert told.members[0].is_master and told.members[0].refusal == refusal


def test_an_owner_that_is_a_slave_now_tells_why_it_does_not_go_on() -> None:
    """Its store is an older copy, say. No other one has more to tell."""
    said = figures(ONE, 90, refusal="its store is an older copy")
    told = status_of(TOLD, dataclasses.replace(VIEW, figures={1: (8, said)}), {1: said})
    assert told.members[0].is_master and told.members[0].refusal == said.refusal
    assert told.why_none.startswith(f"member 1 ({ONE}): its store is an older copy; member 2")
    served_since = dataclasses.replace(VIEW, figures={1: (6, said)})
    assert status_of(TOLD, served_since, {1: said}).members[0].refusal == ""


def test_the_number_of_a_store_that_was_replaced_is_not_told_any_more() -> None:
    """One that is only silent is, and so is one of which nothing is known."""
    stores = {f"s{number}": number for number in range(1, 7)}
    gone = {4: (5, figures(TWO, 80)), 5: (6, figures("10.0.0.5:10911", 80))}
    view = dataclasses.replace(VIEW, stores=stores, figures={**gone, 2: (4, figures("10.0.0.9:10911", 70))})
    term = dataclasses.replace(TERM, in_sync=(ONE, THREE), holders={ONE: Holder(1, "a"), THREE: Holder(3, "c")})
    told = status_of(TOLD, dataclasses.replace(view, term=term), {})
    assert [each.number for each in told.members] == [1, 2, 3, 4, 5, 6]
    again = dataclasses.replace(view, term=term, figures={**gone, 2: (4, figures(TWO, 70))})
    told = status_of(TOLD, again, {4: figures(TWO, 80)})
    assert [each.number for each in told.members] == [1, 3, 4, 5, 6]
    assert "member 2" not in told.why_none


def test_without_a_record_it_says_how_one_begins() -> None:
    assert "gantry admin ha init" in status_of(TOLD, View(), {}).unknown


def test_what_is_told_is_read_again_as_it_was_also_from_a_later_version() -> None:
    paused = dataclasses.replace(VIEW, pause=Pause("ops", "disks", 1, 2))
    told = status_of(TOLD, paused, {2: figures(TWO, 90)})
    assert FailoverStatus.from_dict({**told.to_dict(), "of_a_later_version": 1}) == told


def admin_of(broker: BrokerLife) -> AdminClient:
    return AdminClient(broker.controller.config.namesrv_addresses)


async def pause(broker: BrokerLife) -> None:
    async with admin_of(broker) as admin:
        await admin.succession.pause_failover("broker-a", who="ops", why="a new disk")


async def asked(broker: BrokerLife) -> FailoverStatus:
    async with admin_of(broker) as admin:
        return await admin.succession.failover("broker-a", broker.controller.address)


@pytest.mark.slow
async def test_master_and_slave_tell_the_same_and_a_paused_slave_does_not_take_over(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await begun(on_record, one, two)
            own = two.controller.address
            async with timeout(WITHIN_S):
                while (await asked(one)).next_master != own:  # the slave says of itself that it would
                    pass
            from_two = await asked(two)
            assert dataclasses.replace(await asked(one), told_by=own, etcd_ms=from_two.etcd_ms) == from_two
            assert from_two.etcd_ms >= 0
            assert (from_two.master, from_two.lease_s) == (one.controller.address, LEASE_S)
            await pause(one)
            with pytest.raises(ResponseError, match="paused already"):
                await pause(one)
            assert takes_messages(one)
        assert two.controller.follower is not None and two.controller.follower.candidate is not None
        candidate = two.controller.follower.candidate
        await until(lambda: "ops has paused failover: a new disk" in candidate.refusal)
        told = await asked(two)
        assert (told.next_master, told.pause is not None and told.pause.who) == ("", "ops")
        assert is_slave(two)
        async with admin_of(two) as admin:
            with pytest.raises(ResponseError, match="without the pause another broker replaces it"):
                await admin.succession.resume_failover("broker-a", who="ops")
            await admin.succession.resume_failover("broker-a", who="ops", force=True)
        await until(lambda: is_master(two) and takes_messages(two))
        change = (await asked(two)).changes[0]
        assert (change.epoch, change.master) == (2, two.controller.address)
        assert change.out_ms >= LEASE_S * 1000


@pytest.mark.slow
async def test_of_two_slaves_with_equal_logs_that_with_the_lower_priority_would_be_the_next(
    on_record: OnRecord,
) -> None:
    async with (
        member(on_record, "one", 0) as one,
        member(on_record, "two", 1) as two,
        member(on_record, "three", 2, broker_election_priority=1) as three,
    ):
        await begun(on_record, one, two, three)
        assert [each.number for each in (await asked(one)).members] == [1, 2, 3]
        async with timeout(WITHIN_S):
            while (await asked(one)).next_master != three.controller.address:
                pass
        for slave, priority in ((two, INT_MAX), (three, 1)):
            assert slave.controller.follower is not None and slave.controller.follower.candidate is not None
            assert slave.controller.follower.candidate.own().priority == priority
