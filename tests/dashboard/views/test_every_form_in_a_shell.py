"""Every form of the pages that changes something stands beside its lines for a shell (C1).

The templates are read: a form that is new has to be in one of the two tables.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from dashboard.cluster.gateway import Gateway
from dashboard.models.alarms import AlarmChannel, AlarmRule
from dashboard.models.management import User
from tests.dashboard.conftest import Client, api_for
from tests.source_files import ROOT

TEMPLATES = ROOT / "templates"
FORM = re.compile(r"<form\b[^>]*\bmethod=\"post\"(?:[^>{]|{[^>]*})*", re.DOTALL)
LINES = re.compile(r"{% (?:commands\b|include \"_commands.html\")")

# Template → how many forms need no line, and why.
WITHOUT: dict[str, tuple[int, str]] = {
    "_theme.html": (1, "how one's own pages look"),
    "_times.html": (1, "how one's own pages look"),
    "_language.html": (1, "how one's own pages look"),
    "base.html": (1, "logging out: a token has no session"),
    "session/login.html": (1, "logging in: who has a token needs no session"),
    "first_run/first_run.html": (1, "there is no token before the first account; `gantry users add` is on the page"),
    "people/invitation.html": (1, "for who has no account yet"),
    "brokers/config.html": (1, "the look at the difference, whose page has the lines"),
    "topics/change.html": (1, "the look before the change, which has the lines"),
}


def forms_of(path: Path) -> int:
    return len(FORM.findall(path.read_text(encoding="utf-8")))


def lines_of(path: Path) -> int:
    return len(LINES.findall(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "path", sorted(path for path in TEMPLATES.rglob("*.html") if forms_of(path)), ids=lambda path: path.stem
)
def test_each_form_that_changes_something_has_its_lines(path: Path) -> None:
    name = path.relative_to(TEMPLATES).as_posix()
    excused, _ = WITHOUT.get(name, (0, ""))
    assert lines_of(path) >= forms_of(path) - excused, (
        f"{name} has {forms_of(path)} forms and {lines_of(path)} lines for a shell: put {{% commands … %}} beside each"
    )


def test_no_excuse_is_left_over() -> None:
    counted = Counter({path.relative_to(TEMPLATES).as_posix(): forms_of(path) for path in TEMPLATES.rglob("*.html")})
    assert {name: excused for name, (excused, _) in WITHOUT.items() if excused > counted[name]} == {}


async def test_what_a_curl_line_says_is_taken_by_rest(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("admin")
    user = await User.objects.aget(username="admin")
    api = await api_for(user, "admin")
    pages = ["/alarms/rules/new", "/alarms/silences/new", "/alarms/channels/new/mail", "/tokens"]
    for page in pages:
        [line] = curl_lines((await client.get(page)).content.decode())
        words = shlex.split(line)
        body = json.loads(words[words.index("-d") + 1])
        body |= {"settings": body["settings"] | MAIL} if "settings" in body else {}
        address = next(word for word in words if word.startswith("http")).removeprefix("http://testserver/api/v1")
        status, answer = await api.call(words[words.index("-X") + 1].lower(), address, body)
        assert status in (200, 201), (page, body, answer)
    rule, channel = await AlarmRule.objects.alatest("pk"), await AlarmChannel.objects.alatest("pk")
    for page, expected in (
        (f"/alarms/rules/{rule.pk}", {"PUT": f"/alarms/rules/{rule.pk}", "DELETE": f"/alarms/rules/{rule.pk}"}),
        (f"/alarms/channels/{channel.pk}", {"PUT": f"/alarms/channels/{channel.pk}",
                                            "POST": f"/alarms/channels/{channel.pk}/test"}),
        (f"/alarms/channels/{channel.pk}/delete", {"DELETE": f"/alarms/channels/{channel.pk}"}),
    ):  # fmt: skip
        shown = curl_lines((await client.get(page)).content.decode())
        for method, address in expected.items():
            assert any(f"-X {method} " in line and f"/api/v1{address}" in line for line in shown), (page, shown)
    assert "password" not in " ".join(curl_lines((await client.get("/alarms")).content.decode()))


MAIL = {"host": "mail.example", "sender": "a@example.org", "recipients": "b@example.org"}


def curl_lines(page: str) -> list[str]:
    return [html.unescape(line) for line in re.findall(r"<code>(curl .*?)</code>", page)]
