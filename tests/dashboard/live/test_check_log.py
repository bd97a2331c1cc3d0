"""The log has what the page showed: each problem once when it comes, once when it goes."""

from __future__ import annotations

import logging

import pytest

from dashboard.live.check_log import CheckLog
from dashboard.status.check import Check, Level


def problem(title: str, level: Level = Level.BAD, name: str = "") -> Check:
    return Check(level, title, "evidence", "action", name)


def test_a_problem_is_told_when_it_comes_and_when_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    log = CheckLog()
    with caplog.at_level(logging.INFO):
        for second in range(5):
            log.note([problem(f"silent for {second} s", name="silent")], 100.0 + second)
        log.note([], 160.0)
        log.note([], 161.0)
    told = [(record.levelname, vars(record)["what"]) for record in caplog.records]
    assert told == [("ERROR", "silent for 0 s"), ("INFO", "silent for 4 s")]
    assert vars(caplog.records[-1])["lasted_s"] == 60.0


def test_what_turns_into_something_else_is_told_again_and_goes_once(caplog: pytest.LogCaptureFixture) -> None:
    log = CheckLog()
    with caplog.at_level(logging.INFO):
        for title in (
            "The disk is full",
            "The disk is full of other programs' files",
            "The disk is full of other programs' files",
        ):
            log.note([problem(title, name="disk")], 0.0)
        log.note([], 5.0)
    assert [vars(record)["event"] for record in caplog.records] == ["problem", "problem", "problem_gone"]


def test_what_gets_worse_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    log = CheckLog()
    for level in (Level.WARN, Level.WARN, Level.BAD, Level.WARN):
        log.note([problem("disk", level)], 0.0)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
