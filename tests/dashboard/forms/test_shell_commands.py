"""Lines for a shell: whatever a name holds, the shell hands on the same words and does nothing else."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard.forms.rest_bodies import put_back_body, reset_body
from dashboard.forms.shell_commands import admin_line, curl_line, put_back_words, reset_words, topic_body, topic_words

NASTY = "a'b\"c; $(touch x) `y` \\ é"


def test_words_reach_the_command_as_they_are() -> None:
    words = shlex.split(admin_line("127.0.0.1:9876", "messages", "resend", NASTY, "id"))
    assert words == ["gantry", "admin", "messages", "resend", NASTY, "id", "-n", "127.0.0.1:9876"]


def test_the_token_is_the_shells_and_the_body_is_json() -> None:
    line = curl_line("http://localhost:8080/api/v1/x'y", {"q": NASTY})
    words = shlex.split(line)
    assert "http://localhost:8080/api/v1/x'y" in words and json.loads(words[-1]) == {"q": NASTY}
    assert '"Authorization: Bearer $GANTRY_TOKEN"' in line
    assert "-d" not in shlex.split(curl_line("http://localhost/"))


@pytest.mark.parametrize(
    ("wanted", "words", "body"),
    [
        ({"to": "end"}, ["reset", "g", "t", "--to", "end"], {"to": "end"}),
        (
            {"to": "time", "at": "2026-11-21 07:30"},
            ["reset", "g", "t", "--to", "2026-11-21T07:30:00+00:00"],
            {"to": "time", "at": "2026-11-21T07:30:00Z"},
        ),
        (
            {"to": "end", "topics": ["t", "u"]},
            ["reset", "g", "t", "u", "--to", "end"],
            {"to": "end", "topics": ["t", "u"]},
        ),
        ({"to": "copy", "source": "s", "topics": ["t", "u"]}, [], {"to": "copy", "source": "s", "topics": ["t", "u"]}),
        ({"to": "offset", "offset": "7"}, ["reset", "g", "t", "--offset", "7"], {"to": "offset", "offset": 7}),
        ({"to": "copy", "source": "s"}, ["clone", "s", "g", "t"], {"to": "copy", "source": "s"}),
        ({"to": "shift", "by": "-5"}, [], {"to": "shift", "by": -5}),
    ],
)
def test_a_move_is_said_as_both_take_it(wanted: dict[str, Any], words: list[str], body: dict[str, object]) -> None:
    filled = {"topics": ["t"], "at": "", "offset": "", "by": "", "source": ""} | wanted
    assert (reset_words("g", filled), reset_body(filled)) == (words, {"topics": ["t"]} | body)


def test_so_long_ago_is_a_word_of_the_shell_and_a_moment_of_rest() -> None:
    wanted = {"to": "time", "at": "2 h", "topics": ["t"]}
    assert reset_words("g", wanted) == ["reset", "g", "t", "--to", "2h"]
    ago = datetime.now(UTC) - datetime.fromisoformat(reset_body(wanted)["at"])
    assert timedelta(hours=2) <= ago < timedelta(hours=3)
    assert put_back_body({"q": "x", "since": "soon"}) == {"q": "x", "since": "soon"}


def test_a_topics_form_is_said_as_both_take_it() -> None:
    body = topic_body({"name": "", "queues": 8, "perm": "read"})
    assert (body, topic_words(body)) == (
        {"name": "orders", "write_queues": 8, "perm": "read"},
        ["-q", "8", "--perm", "r"],
    )
    assert topic_body({"queues": "x", "perm": "write"}) == {"write_queues": "x", "perm": "write"}


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, ["dead-letters", "resend", "g"]),
        (
            {"since": "2 h", "until": "2026-11-21"},
            ["dead-letters", "resend", "g", "--from", "2h", "--to", "2026-11-21T00:00:00+00:00"],
        ),
        ({"q": "tag:paid"}, []),
    ],
)
def test_putting_back_is_said_where_the_command_knows_the_choice(chosen: dict[str, str], words: list[str]) -> None:
    assert put_back_words("g", chosen) == words
