"""Each problem leads to the page where a person looks at it or repairs it."""

from __future__ import annotations

from urllib.parse import unquote

from django.urls import resolve

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
