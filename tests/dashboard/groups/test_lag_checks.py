"""Why a group is behind: each cause from made-up looks and answers, and none that is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dashboard.cluster.group_values import GroupDetail, GroupMember, QueuePlace
from dashboard.groups.lag_checks import HELD_LONG_MS, lag_checks
from dashboard.groups.member_load import HeldMessage, MemberLoad, loads_of
from dashboard.status.board import WatchedGroup
from gantrymq.message.model import MessageQueue

NOW = 10_000.0
STEADY = WatchedGroup("g", 400, 5000, 2, NOW, in_rate=10.0, out_rate=10.0, history=((NOW - 50, 400), (NOW, 400)))
FINE = MemberLoad("c1", True, 2, 200, 10, 1, 20, 5.0, 5.0, 0.0)


def queue(number: int, lag: int = 100, owner: str | None = "c1") -> QueuePlace:
    return QueuePlace("orders", "broker-a", number, 1000 + lag, 1000, lag * 10, 1, owner)


def group(*queues: QueuePlace, clients: tuple[str, ...] = ("c1", "c2"), **changes: Any) -> GroupDetail:
    members = tuple(GroupMember(name, "10.0.0.1:1", "PYTHON", ("broker-a",)) for name in clients)
    found = GroupDetail("g", (), queues or tuple(queue(n) for n in range(4)), members, (), (), "CLUSTERING", NOW)
    return replace(found, **changes)


def titles(detail: GroupDetail, seen: WatchedGroup = STEADY, *loads: MemberLoad) -> list[str]:
    return [check.title for check in lag_checks(detail, seen, loads)]


TWO = (FINE, replace(FINE, client_id="c2"))


def test_what_works_has_no_cause_and_neither_has_what_is_not_behind() -> None:
    assert titles(group(), STEADY, *TWO) == []
    assert titles(group(queue(0, 0), clients=()), replace(STEADY, lag=0, members=0)) == []
    silent = [MemberLoad(name, False, 0, 0) for name in ("c1", "c2")]
    assert titles(group(queue(0, owner=None)), STEADY, *silent) == [], "what is not told is no cause"


HELD = HeldMessage("orders", "broker-a", 3, 17, HELD_LONG_MS, "ID", 0)
GROWING = replace(STEADY, lag_ms=60_000, in_rate=42.0, out_rate=7.0, history=((NOW - 50, 100), (NOW, 400)))


@pytest.mark.parametrize(
    ("loads", "title", "evidence"),
    [
        (
            [FINE, replace(FINE, client_id="c2", oldest=HELD)],
            "A message has been in progress",
            "c2 has been working on it",
        ),
        ([FINE, replace(FINE, client_id="c2", failed_rate=5.0)], "33", "5 a second, most of them at c2"),
        ([FINE, replace(FINE, client_id="c2", call_ms=90.0)], "One client is slower", "c2 needs 90\u202fms for a call"),
        ([replace(load, busy=20, call_ms=500.0) for load in TWO], "All listeners are busy", "40 calls in progress"),
        (
            [FINE, replace(FINE, client_id="c2", queues=0)],
            "1 of 2 members holds no queue",
            "c2, but only this many queues: 4",
        ),
    ],
)
def test_members_at_work_tell_why(loads: list[MemberLoad], title: str, evidence: str) -> None:
    [check] = lag_checks(group(), STEADY, loads)
    assert check.title.startswith(title) and evidence in check.evidence
    assert bool(check.link_text) is (title == "A message has been in progress")


def test_one_member_that_broadcasts_hides_no_queue_that_nobody_holds() -> None:
    mixed = group(queue(0), queue(1, owner=None), message_model="BROADCASTING")
    assert "1 queue without an owner" in titles(mixed, STEADY, *TWO)


def test_queues_and_rates_tell_why() -> None:
    assert titles(group(clients=()), replace(STEADY, members=0)) == ["The group has no members"]
    assert titles(group(queue(0), queue(1, owner=None)), STEADY, *TWO) == ["1 queue without an owner"]
    skewed = lag_checks(group(queue(0, 900), queue(1, 5), queue(2, 5)), STEADY, TWO)
    assert [check.title for check in skewed] == ["One queue has most of the lag"]
    assert "99\u202f% of the waiting messages are in orders broker-a · 0, held by c1" in skewed[0].evidence
    assert titles(group(), GROWING, *TWO) == ["Messages arrive faster than the group consumes them"]
    assert titles(group(), replace(STEADY, out_rate=0.0, idle_since=NOW - 60), *TWO) == ["Its offset does not move"]
    filtered = group(subscriptions=(("orders", "paid", "TAG"),))
    assert titles(filtered, replace(STEADY, out_rate=40.0), *TWO) == ["The filter skips about 75\u202f%"]
    assert titles(filtered, replace(STEADY, out_rate=11.0), *TWO) == []
    just_now = replace(STEADY, out_rate=40.0, history=((NOW - 10, 400), (NOW, 400)))
    assert titles(filtered, just_now, *TWO) == [], "a burst is no filter"


def test_an_answer_to_307_is_read_and_an_odd_one_is_no_harm() -> None:
    call = {"msgIds": ["ID"], "topic": "orders", "brokerName": "broker-a", "queueId": 3, "queueOffset": 17,
            "heldMs": HELD_LONG_MS, "reconsumeTimes": 0}  # fmt: skip
    told: dict[str, Any] = {
        "mqTable": {MessageQueue("orders", "broker-a", 0): {"cachedMsgCount": 7}, "odd": "x"},
        "properties": {"PROP_THREADPOOL_CORE_SIZE": "20"},
        "statusTable": {"orders": {"consumeOKTPS": 3.0, "consumeFailedTPS": 1.0, "consumeRT": 100.0},
                        "%RETRY%g": {"consumeOKTPS": 0.0, "consumeFailedTPS": 0.0, "consumeRT": 0.0}},
        "workers": [call, call | {"heldMs": 5}, call | {"heldMs": "for ever"}, None],
    }  # fmt: skip
    [first, second] = loads_of(group(queue(0, 50, "c1"), running={"c1": told}))
    assert first == MemberLoad("c1", True, 1, 50, 7, 3, 20, 100.0, 3.0, 1.0, HELD)
    assert second == MemberLoad("c2", False, 0, 0)
    for odd in ("", [], {"workers": 5, "mqTable": [], "statusTable": {"t": 1, "u": {"consumeRT": float("nan")}},
                         "properties": "x"}):  # fmt: skip
        [load, _] = loads_of(group(queue(0, 50, "c1"), running={"c1": odd}))
        assert (load.lag, load.oldest, load.call_ms) == (50, None, None)
