"""What `gantry admin ha explain` says of a record and of what members answer."""

from __future__ import annotations

import dataclasses

import pytest

from appliance.cli.admin.ha.explain import explain, why_not
from appliance.failover.view import Holder
from appliance.register.term import IN_SYNC, LOCAL, Term, View
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
