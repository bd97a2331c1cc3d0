"""Verbs that ask REST: words become a call, and a call becomes the words that make it."""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from typing import Any

import pytest

from appliance.cli.admin.main import NOUNS, parse
from appliance.cli.admin.rest import offsets
from appliance.cli.admin.rest.calls import Call
from appliance.cli.admin.rest.client import Rest, read_token
from appliance.cli.admin.rest.operations import operations
from appliance.cli.admin.rest.table import CALLS, words_of
from gantrymq.errors import ConfigError


class Asked(Rest):
    """Keeps what it is asked; answers are those given to it, by path, else an empty object."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        super().__init__("http://127.0.0.1:8080", "gmq_x", timeout_s=1)
        self.answers = answers or {}
        self.calls: list[tuple[str, str, Any, dict[str, Any]]] = []

    async def call(self, method: str, path: str, body: Any = None, query: Any = None) -> Any:
        if method == "GET" and path in self.answers:
            return self.answers[path]
        self.calls.append((method, path, body, dict(query or {})))
        return {}


def ask(*words: str, answers: dict[str, Any] | None = None) -> tuple[str, str, Any, dict[str, Any]]:
    """The call that a command line makes."""
    noun, *rest = words
    arguments: argparse.Namespace = parse(noun, rest)
    asked = Asked(answers)
    asyncio.run(arguments.command.act(asked, arguments))
    [call] = asked.calls
    return call


THERE = {
    "/alerts/mutes": {"items": [{"id": 9}]},
    "/topics/t/searches": {"items": [{"id": 7}]},
}  # what is there before it is taken away
SAME = [
    (["alert-rules", "create", "late", "group-behind", "--threshold", "300", "--for", "5min", "--off"],
     ("POST", "/alerts/rules",
      {"name": "late", "kind": "group-behind", "threshold": 300, "for_s": 300, "is_on": False})),
    (["alert-rules", "create", "late", "disk-used", "--threshold", "80.5", "--channel", "3", "--channel", "4"],
     ("POST", "/alerts/rules", {"name": "late", "kind": "disk-used", "threshold": 80.5, "channel_ids": [3, 4]})),
    (["alert-channels", "create", "mails", "mail", "--set", "host=mail.example", "--set", "port=587"],
     ("POST", "/alerts/channels",
      {"name": "mails", "kind": "mail", "settings": {"host": "mail.example", "port": 587}})),
    (["alert-channels", "test", "4"], ("POST", "/alerts/channels/4/test", None)),
    (["mutes", "create", "two words", "--until", "2026-11-21T10:00:00+00:00", "--rule", "2"],
     ("POST", "/alerts/mutes", {"reason": "two words", "ends_at": "2026-11-21T10:00:00+00:00", "rule_id": 2})),
    (["mutes", "end", "9"], ("DELETE", "/alerts/mutes/9", None)),
    (["users", "set", "ada", "--role", "operator"], ("PUT", "/users/ada", {"role": "operator"})),
    (["users", "set", "a@b.org", "--all-names"], ("PUT", "/users/a%40b.org", {"prefixes": []})),
    (["users", "close", "ada"], ("PUT", "/users/ada", {"is_open": False})),
    (["users", "open", "ada"], ("PUT", "/users/ada", {"is_open": True})),
    (["users", "end-sessions", "ada"], ("DELETE", "/users/ada/sessions", None)),
    (["invitations", "create", "Ada, orders team", "--role", "reader", "--names", "orders-", "--names", "pay-"],
     ("POST", "/invitations", {"label": "Ada, orders team", "role": "reader", "prefixes": ["orders-", "pay-"]})),
    (["tokens", "create", "CI", "--scope", "read", "--days", "90"],
     ("POST", "/tokens", {"name": "CI", "scope": "read", "life_days": 90})),
    (["reports", "run", "traffic", "--days", "7", "--topic", "a", "--topic", "b"],
     ("POST", "/reports/runs", {"report": "traffic", "days": 7, "topics": ["a", "b"]})),
    (["reports", "promise", "--group", "g", "--no-promise"],
     ("PUT", "/reports/promises", {"group": "g", "seconds": None})),
    (["reports", "stop", "20261123T153518Z-d42bef"], ("POST", "/reports/runs/20261123T153518Z-d42bef/stop", None)),
    (["pause", "%RETRY%g"], ("PUT", "/groups/%25RETRY%25g/consuming", {"is_on": False})),
    (["reset", "g", "a", "b", "--to", "shift", "--by=-10"],
     ("POST", "/groups/g/reset", {"topics": ["a", "b"], "to": "shift", "by": -10})),
    (["reset", "g", "a", "--to", "undo"], ("POST", "/groups/g/reset", {"topics": ["a"], "to": "undo"})),
    (["saved-searches", "create", "t", "late ones", "--find", "tag:paid", "--from", "1h"],
     ("POST", "/topics/t/searches", {"name": "late ones", "q": "tag:paid", "since": "1h"})),
    (["saved-searches", "delete", "t", "7"], ("DELETE", "/topics/t/searches/7", None)),
    (["topic-changes", "start", "a", "b", "--what", "queues", "--read-queues", "4", "--write-queues", "2"],
     ("POST", "/topic-changes",
      {"what": "queues", "topics": ["a", "b"], "read_queues": 4, "write_queues": 2})),
    (["topic-changes", "preview", "a", "--what", "perm", "--perm", "read"],
     ("POST", "/topic-changes/preview", {"what": "perm", "topics": ["a"], "perm": "read"})),
    (["dead-letter-runs", "start", "g", "--find", "error=Timeout", "--target", "group", "--rate", "10",
      "--include-resent"],
     ("POST", "/dead-letters/g/runs", {"q": "error=Timeout", "target": "group", "rate": 10, "include_resent": True})),
    (["dead-letter-runs", "resume", "g", "3"], ("POST", "/dead-letters/g/runs/3/resume", None)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call"), SAME, ids=[" ".join(words) for words, _ in SAME])
def test_words_become_a_call_and_the_call_the_same_words(words: list[str], call: tuple[str, str, Any]) -> None:
    assert ask(*words, answers=THERE)[:3] == call
    again = words_of(*call)
    assert again[: len(words) if len(words) < 3 else 2] == words[:2]
    assert ask(*again, answers=THERE)[:3] == call


def test_a_reset_by_the_dashboard_shows_what_it_would_do_first() -> None:
    arguments, asked = parse("reset", ["g", "a", "--to", "undo"]), Asked(THERE)
    asyncio.run(arguments.command.plan(asked, arguments))
    assert [call[:3] for call in asked.calls] == [
        ("POST", "/groups/g/reset", {"topics": ["a"], "to": "undo", "dry_run": True})
    ]


def test_what_only_the_dashboard_resets_are_words_of_its_operation() -> None:
    words = operations()["reset_group"]["body"]["to"]["enum"]
    assert set(offsets.ONLY_BY_DASHBOARD) == set(words) - {"end", "begin", "time", "offset"}


def test_each_verb_stands_in_the_help_and_says_what_it_does() -> None:
    assert {noun for noun, (module, _) in NOUNS.items() if module == "rest.table"} | {"reset"} == set(CALLS)
    assert [call.summary for calls in CALLS.values() for call in calls.values() if not call.summary[0].islower()] == []


def test_a_query_reaches_rest_as_one() -> None:
    assert ask("alerts", "list", "--open", "--limit", "5")[3] == {"only_open": "true", "limit": "5"}


RULE: dict[str, Any] = {
    "id": 3, "name": "late", "kind": "group-behind", "threshold": 300.0, "clear": 240.0, "for_s": 10.0, "clear_s": 60.0,
    "pattern": "", "level": "attention", "is_on": True, "channel_ids": [1], "is_preset": True,
}  # fmt: skip


def test_what_is_not_given_stays_as_it_is() -> None:
    rules = {"/alerts/rules": {"items": [RULE]}}
    method, path, body, _ = ask("alert-rules", "set", "3", "--off", "--clear-at-threshold", answers=rules)
    assert (method, path) == ("PUT", "/alerts/rules/3")
    assert body == {key: RULE[key] for key in RULE if key not in ("id", "is_preset")} | {"is_on": False, "clear": None}


def test_a_change_of_nothing_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="say what to change: --role, --names"):
        ask("users", "set", "ada")


def test_secrets_come_from_standard_input_and_stand_in_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("https://hooks.example/1\n0123456789abcdef\n"))
    _, _, body, _ = ask("alert-channels", "create", "hook", "webhook", "--ask", "url", "--ask", "secret")
    assert body["settings"] == {"url": "https://hooks.example/1", "secret": "0123456789abcdef"}
    shown = {"name": "hook", "kind": "webhook", "settings": {"url": "…"}}
    assert words_of("POST", "/alerts/channels", shown) == [
        "alert-channels",
        "create",
        "hook",
        "webhook",
        "--ask",
        "url",
    ]
    assert words_of("PUT", "/account/password", {"current": "…", "password": "…"}) == ["password"]


def test_a_secret_that_is_not_given_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("old one\n"))
    with pytest.raises(ConfigError, match="the new password was not given"):
        ask("password")


def test_no_token_is_said_in_words_and_a_bad_one_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GANTRY_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="gantry users token NAME"):
        read_token(None)
    monkeypatch.setenv("GANTRY_TOKEN", "two words")
    with pytest.raises(ConfigError) as refused:
        read_token(None)
    assert "two words" not in str(refused.value)


def test_a_call_that_no_verb_makes_has_no_words() -> None:
    assert words_of("POST", "/alerts/rules", {"name": "x", "unknown": 1}) == []
    assert words_of("POST", "/nowhere", None) == []


def test_paths_name_what_stands_in_them_once() -> None:
    every: list[Call] = [call for calls in CALLS.values() for call in calls.values()]
    assert [call.path for call in every if len(set(call.ids)) < len(call.ids)] == []
