"""Which problem is read first: what loses data, what stops, what slows, and after what is what will be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.settings.alert_names import RuleKind
from dashboard.alerts.kinds import KINDS
from dashboard.cluster import units
from dashboard.overview.schemas import ClusterOut
from dashboard.status.board import BrokerFacts, BrokerState, Lane, Snapshot, WatchedGroup
from dashboard.status.check import Check, Level
from dashboard.status.services import Services
from dashboard.status.verdict import judge
from tests.bounded import bounded

NOW = 10_000.0
FACTS = BrokerFacts("broker-a", "h:1", NOW, in_rate=1.0, disk_ratio=0.5)
SILENT = BrokerState("broker-b", "i:1", None, "no answer", NOW - 60)
DAMAGED: dict[str, Any] = {"services": Services(messages_damaged=1)}
DISAGREEING: dict[str, Any] = {"services": Services(disagreements=1, disagreeing_groups=("g",))}
BUSY: dict[str, Any] = {"lanes": (Lane("send", 0, 10000, 250.0),)}
FULL_IN_AN_HOUR: dict[str, Any] = {"disk_growth": 1e6, "disk_full_in_s": 3000.0}
FULL_IN_FIVE: dict[str, Any] = {"disk_growth": 1e6, "disk_full_in_s": 5 * 3600.0}
ALONE = WatchedGroup("left", 5, 10, 0, NOW, alone_since=NOW - 61)
BEHIND = WatchedGroup("orders-mail", 17105, 24 * 60_000, 2, NOW)


@pytest.mark.parametrize(
    ("facts", "silent", "groups", "titles"),
    [
        (DAMAGED, True, (), ["broker-a has damaged messages on its disk", "broker-b does not answer"]),
        ({}, True, (ALONE,), ["broker-b does not answer", "left has no members"]),
        (DISAGREEING, False, (ALONE,), ["Members of consumer groups disagree", "left has no members"]),
        (BUSY, False, (ALONE,), ["left has no members", "broker-a is busy: the send lane is slow"]),
        (BUSY | FULL_IN_FIVE, False, (), ["broker-a is busy: the send lane is slow", "full on h within 6 h"]),
        (FULL_IN_FIVE, False, (ALONE,), ["left has no members", "full on h within 6 h"]),
        (FULL_IN_AN_HOUR, False, (ALONE,), ["left has no members", "full on h within 1 h"]),
        (FULL_IN_AN_HOUR, False, (BEHIND,), ["orders-mail is behind", "full on h within 1 h"]),
        ({"disk_ratio": 0.86}, False, (ALONE,), ["The disk is nearly full on h", "left has no members"]),
        ({"disk_ratio": 0.76}, False, (ALONE,), ["left has no members", "The disk is filling on h"]),
        ({}, False, (BEHIND, ALONE), ["left has no members", "orders-mail is behind"]),
    ],
)
def test_of_two_problems_the_one_that_harms_more_is_the_sentence(
    facts: dict[str, Any], silent: bool, groups: tuple[WatchedGroup, ...], titles: list[str]
) -> None:
    states = (BrokerState("broker-a", "h:1", replace(FACTS, **facts)), *((SILENT,) if silent else ()))
    verdict = judge(Snapshot(NOW, "n", None, states, (), None, groups=groups))
    found = [problem.title.replace(units.THIN, " ") for problem in verdict.problems]
    assert all(words in title for words, title in zip(titles, found, strict=True)), found
    assert verdict.problems[0].title in verdict.sentence


def test_a_forecast_that_is_a_problem_makes_the_whole_a_problem_to_programs() -> None:
    state = BrokerState("broker-a", "h:1", replace(FACTS, **FULL_IN_AN_HOUR))
    snapshot = Snapshot(NOW, "n", None, (state,), (), None, groups=(ALONE,))
    verdict = judge(snapshot)
    assert (verdict.level, verdict.problems[0].level) == (Level.WARN, Level.WARN), "the page's mark is its sentence's"
    assert ClusterOut.of(snapshot, verdict).level == Level.BAD.word


PARTS: tuple[dict[str, Any], ...] = (
    DAMAGED,
    DISAGREEING,
    BUSY,
    FULL_IN_AN_HOUR,
    {"disk_ratio": 0.76},
    {"disk_ratio": 0.96},
)


@pytest.mark.parametrize("acknowledged", [False, True])
@bounded(60)
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=3), silent=st.booleans(),
    groups=st.lists(st.sampled_from((ALONE, BEHIND)), unique=True), rule=st.none() | st.sampled_from(RuleKind),
    level=st.sampled_from((Level.WARN, Level.BAD)), namesrv_why=st.sampled_from((None, "no answer")),
)  # fmt: skip
def test_the_mark_is_as_bad_as_the_problem_that_the_sentence_names(
    acknowledged: bool,
    parts: list[dict[str, Any]],
    silent: bool,
    groups: list[WatchedGroup],
    rule: RuleKind | None,
    level: Level,
    namesrv_why: str | None,
) -> None:
    facts = replace(FACTS, **{key: value for part in parts for key, value in part.items()})
    states = (BrokerState("broker-a", "h:1", facts), *((SILENT,) if silent else ()))
    snapshot = Snapshot(NOW, "n", namesrv_why, states, (), None, groups=tuple(groups))
    if rule is not None:
        alert = Check(level, "a rule says so", "", name="1: x", rules=(rule,), about=("x",), harm=KINDS[rule].harm)
        snapshot = replace(snapshot, alerts_of_rules=(alert,))
    if acknowledged:
        worst = [one for one in judge(snapshot).problems if one.level is Level.BAD]
        snapshot = replace(snapshot, acknowledged=frozenset(one.identity for one in worst))
    verdict = judge(snapshot)
    if verdict.problems:
        assert verdict.sentence.startswith(verdict.problems[0].title)
        assert verdict.level is verdict.problems[0].level, verdict
        assert verdict.link == verdict.problems[0].link
    else:
        assert verdict.level is Level.GOOD
