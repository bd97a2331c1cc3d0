"""Moments on pages: each a <time> that says its zone, and no template prints one otherwise."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from dashboard.templatetags.times import SHOWN, when, when_ms
from tests.appliance_process import ROOT

TEMPLATES = ROOT / "templates"
SCRIPT = ROOT / "dashboard/static/dashboard/times.js"
MAIL = {"reports/letter.html"}  # no script runs in a mail: its days are UTC, as its head says
# What prints a moment raw. "UTC" stands in templates only where a zone is named, not beside a moment.
RAW = re.compile(
    r"\|(?:date|time|moment|stamp|clock)\b|\{%\s*now\b|\}\}\s*UTC|<small>UTC"
    r"|(?<!looked)(?<!broken)_at\s*\}\}|_ms\s*\}\}|(?<!asked)(?<!form)[ .](?:begin|end|until|since)\s*\}\}"
)
AT = datetime(2026, 11, 21, 7, 49, 27, 123000, tzinfo=UTC)


def templates() -> list[str]:
    names = {str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.html")}
    assert names > MAIL
    return sorted(names - MAIL)


@pytest.mark.parametrize("name", templates())
def test_no_template_prints_a_moment_but_by_its_tag(name: str) -> None:
    assert RAW.findall((TEMPLATES / name).read_text(encoding="utf-8")) == []


def test_a_raw_moment_would_be_seen() -> None:
    for text in ('{{ run.at|date:"H:i" }}', "{{ row.begun_at }}", "{{ hour }} UTC", "{{ line.stored_ms }}"):
        assert RAW.search(text), text


def test_a_moment_says_its_zone() -> None:
    assert when(AT) == (
        '<time datetime="2026-11-21T07:49:27.123Z" data-show="second"><span class="t-day">2026-11-21</span> '
        '<span class="t-clock">07:49:27 <small>UTC</small></span></time>'
    )
    assert when(AT.timestamp(), "clock-minute").endswith('<span class="t-clock">07:49 <small>UTC</small></span></time>')
    assert "UTC" not in when(AT, "day")


@pytest.mark.parametrize("never", [None, 0, -1])
def test_what_never_was_is_a_dash(never: int | None) -> None:
    assert when_ms(never) == when(never) == "—"


def test_page_and_script_show_the_same_of_a_moment() -> None:
    [table] = re.findall(r"const SHOWN = \{(.+?)\};", SCRIPT.read_text(encoding="utf-8"))
    told = re.findall(r'"?([\w-]+)"?: \[(true|false), (\d+)\]', table)
    assert {name: (has_day == "true", int(chars)) for name, has_day, chars in told} == SHOWN
