"""What strangers can write into the log: little, and not much of it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
from django.test import RequestFactory

from dashboard.web.limits import TARGET_BYTES_MAX
from dashboard.web.server import PeerLogFilter
from gantrymq.log_limit import LINES_MAX, WINDOW_S, LogLimit
from tests.appliance_process import RunningAppliance
from tests.visitor import Visitor, talk

REQUESTS = 60
LINE_CHARS_MAX = 400


def grown(log: Path, before: int, says: str) -> list[str]:
    """The lines since `before` that say this; the appliance itself may write others at any time."""
    with log.open() as file:
        file.seek(before)
        return [line for line in file.read().splitlines() if says in line]


def _lines_max(since: float) -> int:
    """How many lines of one kind the time since `since` (monotonic seconds) leaves room for."""
    return LINES_MAX * (int((time.monotonic() - since) / WINDOW_S) + 2)


def test_a_bad_host_is_one_short_line_and_only_some_of_them(gantry: RunningAppliance) -> None:
    log = Path(gantry.data) / "logs" / "gantry.log"
    before, since = log.stat().st_size, time.monotonic()
    visitor = Visitor(f"http://{gantry.http}", source="127.0.0.3")
    for number in range(REQUESTS):
        answer = visitor.get("/login", Host=f"rebound-{number}.example" + "x" * 1000)
        assert answer.status == 400 and "does not answer to this host name" in answer.text
    assert '"detail": "This dashboard' in visitor.get("/api/v1/topics", Host="no such host!").text
    lines = grown(log, before, "event=host_refused")
    assert 0 < len(lines) <= _lines_max(since)
    assert all(len(line) < LINE_CHARS_MAX for line in lines), lines
    assert not grown(log, before, "Traceback")


def test_pages_that_are_not_there_fill_no_log(gantry: RunningAppliance) -> None:
    log = Path(gantry.data) / "logs" / "gantry.log"
    before, since = log.stat().st_size, time.monotonic()
    visitor = Visitor(f"http://{gantry.http}", source="127.0.0.4")
    for number in range(REQUESTS):
        assert visitor.get(f"/nope-{number}").status == 404
    assert 0 < len(grown(log, before, "Not Found: /nope-")) <= _lines_max(since)


@pytest.mark.parametrize("target", ["evil:1", "*", "http://evil.example/login", "login", "?", "\\login"])
@pytest.mark.parametrize("method", ["GET", "CONNECT", "OPTIONS"])
def test_s05_an_address_without_a_slash_is_no_fault_of_ours(gantry: RunningAppliance, method: str, target: str) -> None:
    """S05: `CONNECT evil:1` was a 500 and ten kilobytes of tracebacks, for any stranger."""
    log = Path(gantry.data) / "logs" / "gantry.log"
    before = log.stat().st_size
    answer = talk(gantry.http, f"{method} {target} HTTP/1.1\nHost: localhost\nConnection: close\n\n")
    assert answer.status == 400
    assert not grown(log, before, "Traceback")
    assert not grown(log, before, "django.request")


def test_a_long_address_is_refused(gantry: RunningAppliance) -> None:
    head = "GET /{} HTTP/1.1\nHost: localhost\nConnection: close\n\n"
    assert talk(gantry.http, head.format("x" * TARGET_BYTES_MAX)).status == 414
    assert talk(gantry.http, head.format("x" * (TARGET_BYTES_MAX - 1))).status == 404


def test_the_number_of_lines_left_out_is_told_and_our_own_faults_always() -> None:
    now = 0.0
    lines = PeerLogFilter(LogLimit(clock=lambda: now))
    request = RequestFactory().get("/nope")

    def record(level: int = logging.WARNING, **facts: object) -> logging.LogRecord:
        return logging.makeLogRecord({"name": "django.request", "levelno": level, "request": request} | facts)

    assert sum(lines.filter(record(status_code=404)) for _ in range(50)) == LINES_MAX
    assert lines.filter(record(status_code=403)) and lines.filter(record(logging.ERROR, status_code=404))
    assert lines.filter(logging.makeLogRecord({"name": "django.request", "levelno": logging.WARNING}))
    now = WINDOW_S
    later = record(status_code=404)
    assert lines.filter(later)
    assert later.left_out == 50 - LINES_MAX  # type: ignore[attr-defined]
