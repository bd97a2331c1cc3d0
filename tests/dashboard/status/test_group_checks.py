"""Groups that are behind or alone, dead letters, and a disk that fills up are no "All good". Which groups read a
topic, and which is furthest behind.
"""

from __future__ import annotations

from dataclasses import replace

from dashboard.cluster import units
from dashboard.cluster.group_values import GroupPlace, GroupSummary
from dashboard.groups.trend import watched
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot, Stored, WatchedGroup
from dashboard.status.readers import readers_of
from dashboard.status.verdict import Level, judge

NOW = 10_000.0
FACTS = BrokerFacts("broker-a", "a", NOW, in_rate=1.0, disk_ratio=0.5)
CALM = Snapshot(NOW, "n", None, (BrokerState("broker-a", "a", FACTS),), (), None)
BEHIND = WatchedGroup("orders-mail", 17105, 24 * 60_000, 2, NOW)
ALONE = WatchedGroup("left", 5, 10, 0, NOW, alone_since=NOW - 61)


def shown(text: str) -> str:
    return text.replace(units.THIN, " ")


def test_a_group_that_is_minutes_behind_is_named_and_linked() -> None:
    verdict = judge(replace(CALM, groups=(WatchedGroup("fine", 3, 4000, 1, NOW), BEHIND)))
    assert verdict.level is Level.WARN and verdict.link == "/group/orders-mail"
    assert verdict.sentence == "orders-mail is behind"
    assert [shown(problem.evidence) for problem in verdict.problems] == [
        "24 min behind, 17 105 messages are waiting, 2 members"
    ]
    partial = judge(replace(CALM, groups=(replace(BEHIND, is_partial=True),)))
    assert shown(partial.problems[0].evidence).startswith("at least 24 min behind, at least 17 105 messages")


def test_no_member_is_blamed_for_being_slow_where_there_is_none() -> None:
    """A dashboard that has just started knows the lag at once, and 20 seconds later that nobody comes back."""
    [problem] = judge(replace(CALM, groups=(replace(BEHIND, members=0, alone_since=NOW - 1),))).problems
    assert problem.title == "orders-mail is behind" and shown(problem.evidence).endswith(", 0 members")
    assert problem.action.startswith("No consumer is connected now.")


def test_many_groups_behind_are_a_few_cards_and_a_number() -> None:
    groups = tuple(replace(BEHIND, name=f"g{number}", lag_ms=(number + 5) * 60_000) for number in range(12))
    problems = judge(replace(CALM, groups=groups)).problems
    assert [problem.link for problem in problems] == [*(f"/group/g{n}" for n in (11, 10, 9, 8, 7)), "/groups"]
    assert problems[-1].title == "More consumer groups are behind"
    assert shown(problems[-1].evidence).startswith("7 consumer groups, ")


def test_groups_without_members_are_never_a_part_of_those_that_are_behind() -> None:
    alone = tuple(replace(ALONE, name=f"a{number}") for number in range(7))
    problems = judge(replace(CALM, groups=(*alone, BEHIND))).problems
    more = {problem.title: problem.about for problem in problems[5:]}
    assert more == {
        "More consumer groups have no members": ("a5", "a6"),
        "More consumer groups are behind": ("orders-mail",),
    }


def test_a_group_without_members_is_an_alarm_after_a_while_and_only_when_messages_wait() -> None:
    row = GroupSummary("left", lag=5, lag_ms=10, members=0)
    first = watched(row, None, NOW)
    assert judge(replace(CALM, groups=(first,))).level is Level.GOOD
    later = watched(row, first, NOW + 61)
    verdict = judge(replace(CALM, at=NOW + 61, groups=(later,)))
    assert verdict.sentence == "left has no members"
    for change in ({"lag": 0}, {"members": 1}, {"members": None}, {"lag": None}):
        assert watched(replace(row, **change), later, NOW + 62).alone_since is None, change  # type: ignore[arg-type]


def test_dead_letters_are_an_alarm_while_they_are_stored() -> None:
    verdict = judge(replace(CALM, stored=Stored(9, 2, NOW, (), (("mail", 1700), ("x", 105)))))
    assert verdict.sentence == "Dead letters are waiting"
    assert shown(verdict.problems[0].evidence) == "1 805 dead letters; mail: 1 700, x: 105"
    assert verdict.link == "/dead-letters"
    assert judge(replace(CALM, stored=Stored(9, 2, NOW, (), (("mail", 1),)))).link == "/dead-letters/mail"


def test_a_forecast_is_told_after_what_is_behind_now() -> None:
    def verdict_for(seconds: float | None) -> tuple[Level, str]:
        state = BrokerState("broker-a", "a", replace(FACTS, disk_growth=1e6, disk_full_in_s=seconds))
        verdict = judge(replace(CALM, brokers=(state,), groups=(BEHIND,)))
        return verdict.level, shown(verdict.sentence)

    assert verdict_for(52 * 60) == (Level.WARN, "orders-mail is behind, and 1 more"), "the mark is the headline's"
    for seconds in (None, 7 * 3600.0):
        assert verdict_for(seconds) == (Level.WARN, "orders-mail is behind")


def test_the_range_of_a_forecast_is_said_and_its_title_stays_the_same() -> None:
    def forecast(seconds: float, earliest: float, latest: float) -> tuple[str, str]:
        facts = replace(
            FACTS, disk_growth=1e6, disk_full_in_s=seconds, disk_full_earliest_s=earliest, disk_full_latest_s=latest
        )
        (problem,) = judge(replace(CALM, brokers=(BrokerState("broker-a", "a", facts),))).problems
        return shown(problem.title), shown(problem.evidence)

    title, evidence = forecast(2.5 * 3600, 2 * 3600, 4 * 3600)
    assert title == "The disk will be full on a within 6 h" == forecast(5.5 * 3600, 4 * 3600, 9 * 3600)[0]
    assert "Full in 2 h to 4 h at this rate." in evidence
    assert "Full in 5 h at this rate." in forecast(5 * 3600, 5 * 3600, 5 * 3600)[1]


def test_a_forecast_that_holds_no_longer_for_sure_says_when_at_the_earliest() -> None:
    facts = replace(FACTS, disk_growth=-1e6, disk_full_earliest_s=4 * 3600.0, was_disk_full_soon=True)
    (problem,) = judge(replace(CALM, brokers=(BrokerState("broker-a", "a", facts),))).problems
    assert "Full in 4 h at the earliest." in shown(problem.evidence) and "growing" not in shown(problem.evidence)
    calm = replace(facts, was_disk_full_soon=False)
    assert not judge(replace(CALM, brokers=(BrokerState("broker-a", "a", calm),))).problems


def test_brokers_on_one_disk_are_one_problem() -> None:
    def full(name: str, host: str, disk: str) -> BrokerState:
        facts = replace(FACTS, name=name, disk_growth=1e6, disk_full_in_s=3000.0, disk_text=disk)
        return BrokerState(name, f"{host}:10911", facts)

    one, other = "Total : 252.0 GiB, Free : 61.4 GiB.", "Total : 100.0 GiB, Free : 9 GiB."
    states = (full("a", "h", one), full("b", "h", one), full("c", "h", other), full("d", "i", one))
    found = judge(replace(CALM, brokers=states)).problems
    assert [problem.name for problem in found] == ["disk of a", "disk of c", "disk of d"]
    assert "On the same disk: b." in found[0].evidence and "same disk" not in found[1].evidence
    assert [shown(problem.title) for problem in found] == [
        f"The disk will be full on {host} within 1 h" for host in "hhi"
    ]


def test_a_disk_is_known_by_its_host_and_device_whichever_broker_is_away() -> None:
    def full(name: str, device: str, why: str | None = None) -> BrokerState:
        at = NOW - 60 if why else NOW
        told = "Total : 252.0 GiB, Free : 61.4 GiB."
        facts = replace(FACTS, name=name, at=at, disk_ratio=0.8, disk_text=told, disk_device=device)
        return BrokerState(name, "h:10911", facts, why)

    def disks(*states: BrokerState) -> list[tuple[str, tuple[str, ...]]]:
        problems = judge(replace(CALM, brokers=states)).problems
        return [(problem.name, problem.about) for problem in problems if "disk" in problem.title]

    b, c = full("b", "8:1"), full("c", "8:17")
    assert disks(full("a", "8:1"), b, c) == [("disk 8:1 of h", ("a", "b")), ("disk 8:17 of h", ("c",))]
    assert disks(full("a", "8:1", "no answer"), b, c) == [("disk 8:1 of h", ("b",)), ("disk 8:17 of h", ("c",))]


def test_a_name_that_is_no_address_leads_to_the_list() -> None:
    assert judge(replace(CALM, groups=(replace(BEHIND, name="a b/c"),))).link == "/groups"


def group(name: str, at: float, *places: GroupPlace) -> WatchedGroup:
    return WatchedGroup(name, None, None, 1, at, places=places)


def test_the_worst_lag_is_over_all_brokers_of_one_group() -> None:
    near = group("near", 5.0, GroupPlace("orders", "a", 0, 9, 100), GroupPlace("mail", "a", 0, 0, None))
    far = group("far", 3.0, GroupPlace("orders", "a", 0, 6, 700), GroupPlace("orders", "b", 0, 7, 200))
    found = readers_of([near, far])
    assert (found["orders"].groups, found["orders"].lag, found["orders"].lag_ms) == (2, 13, 700)
    assert (found["orders"].group, found["orders"].at) == ("far", 3.0)
    assert (found["mail"].groups, found["mail"].lag, found["mail"].group) == (1, 0, "near")
    assert "other" not in found
