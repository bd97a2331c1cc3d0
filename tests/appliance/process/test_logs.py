"""Lines of the log: facts behind the message, whatever they hold."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from appliance.process.logs import FACT_CHARS_MAX, FORMAT, FactsFormatter


def line_of(**facts: Any) -> str:
    record = logging.makeLogRecord({"name": "test", "levelno": logging.WARNING, "levelname": "WARNING"} | facts)
    record.msg = "it happened"
    return FactsFormatter(FORMAT).format(record) + "\n"


def test_facts_stand_behind_the_message() -> None:
    assert line_of(event="it_happened", count=3).endswith("WARNING test  it happened  event=it_happened count=3\n")


@pytest.mark.parametrize("text", ["a\nb", "a\r\x1b[2Jb", "a b=c", "\u2028", "\x00"])
def test_a_peers_text_makes_no_line_of_its_own(text: str) -> None:
    line = line_of(client=text)
    assert line.count("\n") == 1 and line.endswith("\n")
    assert line.strip().isprintable()
    assert line.rstrip("\n").endswith(f"client={text!r}")


def test_a_peers_text_is_not_kept_whatever_its_length() -> None:
    line = line_of(client="x" * 1_000_000, code=7)
    assert len(line) < FACT_CHARS_MAX + 200
    assert "of 1000000 characters" in line and line.endswith("code=7\n")
