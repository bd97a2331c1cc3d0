"""What `gantry admin ha explain` says of a record and of what members answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from appliance.cli.admin.ha.explain import explain, unfinished, why_not
from appliance.failover.view import Holder, TermState
from appliance.register.term import IN_SYNC, LOCAL, Term, View
from gantrymq.client.admin.failover import FailoverMember, FailoverPause, FailoverStatus
from gantrymq.client.admin.members import Member

ONE, TWO, THREE = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"
TERM = Term(3, "id", ONE, (ONE, TWO), IN_SYNC)
JOINED = dataclasses.replace(TERM, holders={ONE: Holder(1, "a"), TWO: Holder(2, "b")})


def member(
    address: str,
    *,
    epoch: int = 3,
    epoch_id: str = "id",
    end: int = 100,
    told: str = "0.2",
    master: bool = False,
    boot: str = "none",
) -> Member:
    info = {
        "brokerRole": "SYNC_MASTER" if master else "SLAVE",
        "epoch": str(epoch),
        "epochId": epoch_id,
        "commitLogMaxOffset": str(end),
        "slaveToldSecondsAgo": told,
        "memberBoot": boot,
        "inSyncSetPublished": "on record" if master else "none",
    }
    return Member(address, 0 if master else 1, info)


def test_the_member_with_the_longest_log_of_the_set_would_be_the_next_master() -> None:
    term = Term(3, "id", ONE, (ONE, TWO, THREE), IN_SYNC)
    lines = explain("broker-a", View(term, 7), [member(ONE, master=True), member(TWO, end=90), member(THREE, end=95)])
    assert f"{ONE} is the master of that epoch" in lines
    assert f"if {ONE} died now: `gantry admin promote broker-a` makes {THREE} the master" in lines


def told(**more: Any) -> FailoverStatus:
    members = (
        FailoverMember(1, ONE, in_sync=True, is_master=True),
        FailoverMember(2, TWO, in_sync=True, is_master=False, has_told=True),
        FailoverMember(3, THREE, in_sync=False, is_master=False, has_told=True, refusal="member 3 is not in sync"),
    )
    status = FailoverStatus("broker-a", is_automatic=True, master=ONE, members=members, next_master=TWO, next_in_s=6.0)
    return dataclasses.replace(status, **more)


def test_with_automatic_failover_it_says_who_takes_over_when_and_why_others_do_not() -> None:
    lines = explain("broker-a", View(TERM, 7), [member(ONE, master=True), member(TWO)], told())
    assert (
        f"if {ONE} died now: {TWO} would take over by itself in about 6 s, or about 1 s when a supervisor sees it die"
    ) in lines
    assert f"{THREE}: member 3 is not in sync" in lines


def test_what_speaks_against_the_master_on_record_is_said_of_it_too() -> None:
    """It has come back with an older copy of its store: as docs/operations/failover-runbook.md says, it says so."""
    older, two = "the store of member 1 is an older copy", told().members[1]
    copied = FailoverMember(1, ONE, in_sync=True, is_master=True, has_told=True, refusal=older)
    for status, times in ((told(members=(copied, two)), 1), (told(), 0)):
        lines = explain("broker-a", View(TERM, 7), [member(ONE)], status)
        assert lines.count(f"{ONE}: {older}") == times
    unbegun = told(members=(copied, two), state=TermState.OPENING, is_complete=False)
    assert f"{ONE}: {older}" not in explain("broker-a", View(TERM, 7), [], unbegun), "what is half done has it already"


def test_an_etcd_without_room_is_told_whoever_promotes() -> None:
    for is_automatic in (True, False):
        trouble = told(is_automatic=is_automatic, etcd_trouble="etcd's database is full")
        assert "beware: etcd's database is full" in explain("broker-a", View(TERM, 7), [], trouble)


def test_a_member_that_has_not_joined_does_not_take_over_from_a_master_that_renews() -> None:
    assert why_not(TERM, member(TWO)) == ""  # an administrator promotes it
    renewing = dataclasses.replace(TERM, session="s")
    assert "has not joined" in why_not(renewing, member(TWO))
    assert why_not(dataclasses.replace(JOINED, session="s"), member(TWO, boot="b")) == ""


def test_while_etcd_refuses_changes_it_names_nobody_as_the_next_master() -> None:
    lines = explain("broker-a", View(TERM, 7), [], told(is_etcd_refusing=True, etcd_trouble="etcd is full"))
    assert lines[-1] == f"if {ONE} died now: no broker would take over, since etcd refuses every change"


def test_while_it_is_paused_it_says_by_whom_and_why() -> None:
    lines = explain("broker-a", View(TERM, 7), [], told(pause=FailoverPause("ops", "disks", 1_000, 0), next_master=""))
    assert any("no broker would take over, ops has paused failover since" in line and "disks" in line for line in lines)


@pytest.mark.parametrize("state", ["opening", "released"])  # released: its supervisor has seen it die
def test_a_promotion_that_was_not_begun_is_named_with_the_command_that_finishes_it(state: str) -> None:
    half = told(epoch=4, state=state, pause=FailoverPause("ops", "", 0))
    (line,) = unfinished(half)
    assert f"epoch 4 was given to {ONE} by hand" in line and "once it runs again and the pause has ended." in line
    assert f"`gantry admin promote broker-a --to {ONE} --accept-unknown` finishes it" in line
    rebooted = dataclasses.replace(half.members[0], refusal="the machine of member 1 has restarted")
    (line,) = unfinished(dataclasses.replace(half, members=(rebooted,)))
    assert "but says: the machine of member 1 has restarted" in line
    assert line in explain("broker-a", View(TERM, 7), [], dataclasses.replace(half, members=(rebooted,)))


def test_a_broker_that_has_not_joined_does_not_begin_it_by_itself() -> None:
    (line,) = unfinished(told(state="opening", members=()))
    assert "It has not joined, so it does not do so by itself." in line and "once it runs again" not in line


@pytest.mark.parametrize(
    "further", [{"state": "open"}, *({"state": each, "is_complete": True} for each in ("opening", "released"))]
)
def test_one_that_was_begun_is_not_half_done(further: dict[str, Any]) -> None:
    assert unfinished(told(**further)) == []


def test_without_a_record_it_says_how_to_begin_one() -> None:
    assert "ha init" in explain("broker-a", View(), [member(ONE, master=True)])[0]


@pytest.mark.parametrize(
    ("term", "candidate", "reason"),
    [
        (TERM, Member(TWO, 1), "does not answer"),
        (TERM, member(TWO, epoch=2), "its log is of epoch 2"),
        (TERM, member(TWO, epoch_id="other"), "its log is of epoch 3"),
        (TERM, member(THREE), "is not in sync"),
        (TERM, member(TWO, told="never"), "since it started"),
        (Term(3, "id", ONE, (ONE, TWO), LOCAL), member(TWO), "does not wait"),
        (TERM, member(TWO), ""),
        (JOINED, member(TWO, boot="b", told="never"), ""),  # its process ended, its machine did not
        (JOINED, member(TWO, boot="c"), "its machine has rebooted"),
    ],
)
def test_each_reason_why_a_member_can_not_take_over_is_said(term: Term, candidate: Member, reason: str) -> None:
    told = why_not(term, candidate)
    assert reason in told if reason else told == ""


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([Member(ONE, 0)], f"{ONE} does not answer"),
        ([], f"{ONE} does not answer"),
        ([member(ONE, epoch=2)], "has not begun the epoch on record"),
        ([member(ONE, epoch=4, master=True)], "ha adopt"),
        ([member(ONE, master=True), member(TWO, epoch=5, master=True)], "ha adopt"),
        ([member(ONE, master=True), member(TWO, epoch=2, master=True)], "which is over"),
    ],
)
def test_brokers_that_do_not_agree_with_the_record_are_named(members: list[Member], said: str) -> None:
    assert any(said in line for line in explain("broker-a", View(TERM, 7), members))
