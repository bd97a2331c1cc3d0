"""Each problem leads to the page where a person looks at it or repairs it. A problem is called the same from look to
look: figures are its evidence.
"""

from __future__ import annotations

from urllib.parse import unquote

from django.urls import resolve
from django.utils import translation

from dashboard.status.verdict import checked, judge
from tests.dashboard.status import troubled


def test_each_problem_leads_to_a_page_that_is_there() -> None:
    for snapshot in troubled.snapshots(2):
        problems = checked(snapshot)
        assert [problem.title for problem in problems if not problem.link] == []
        for problem in problems:
            resolve(problem.link)
        assert judge(snapshot).link == problems[0].link


def test_what_is_wrong_with_a_broker_leads_to_its_page() -> None:
    pages = {one.title: unquote(one.link) for each in troubled.snapshots(1) for one in checked(each)}
    assert pages["silent does not answer"] == "/broker/silent"
    assert pages["Slave silent:1 does not answer"] == "/broker/silent:1"
    assert pages["broker-a rejects requests"] == "/broker/broker-a"
    assert pages["The disk is full on full"] == "/broker/full"
    assert pages["paused: failover is paused"] == "/broker/paused"
    assert pages["Process failed has failed"] == "/brokers" == pages["The name server does not answer"]
    assert pages["Members of consumer groups disagree"] == "/groups"


def titles(more: int) -> list[list[tuple[str, str]]]:
    return [sorted((one.title, one.identity) for one in checked(each)) for each in troubled.snapshots(more)]


def test_titles_and_names_stay_the_same_when_only_figures_change() -> None:
    few, many = titles(1), titles(3)
    assert few == many
    assert all(few), "each of these clusters has problems"
    evidence = [[one.evidence for one in checked(each)] for each in troubled.snapshots(1)]
    assert evidence != [[one.evidence for one in checked(each)] for each in troubled.snapshots(3)]


def test_an_alert_is_known_again_in_every_language() -> None:
    in_english = titles(1)
    with translation.override("zh-hans"):
        in_chinese = titles(1)
    assert [[name for _, name in each] for each in in_chinese] != [[title for title, _ in each] for each in in_chinese]
    assert sorted(name for each in in_chinese for _, name in each) == sorted(
        name for each in in_english for _, name in each
    )
