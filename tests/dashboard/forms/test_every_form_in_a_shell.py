"""Every form of the pages that changes something stands beside its lines for a shell, `gantry admin` and curl (C1).

The templates are read: a form that is new has to be in one of the two tables.
"""

from __future__ import annotations

import html
import importlib
import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from appliance.cli.admin import main
from appliance.cli.admin.main import NOUNS
from appliance.cli.admin.rest.client import Rest
from appliance.cli.admin.rest.table import CALLS
from dashboard.api.operations import api
from dashboard.cluster.gateway import Gateway
from dashboard.models.alerts import AlertChannel, AlertRule
from dashboard.models.management import User
from tests.dashboard.addresses import all_patterns
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
    "sign_in/login.html": (1, "logging in: who has a token needs no session"),
    "people/first_run.html": (1, "there is no token before the first account; `gantry users add` is on the page"),
    "people/invitation.html": (1, "for who has no account yet"),
    "brokers/config.html": (1, "the look at the difference, whose page has the lines"),
    "definitions/accounts.html": (1, "the preview of a change, whose page has the lines of `apply`"),
    "definitions/definitions.html": (1, "what the preview shows is done by `apply`, whose lines stand below"),
    "messages/messages.html": (2, "searches that an account keeps for its own pages"),
    "topics/change.html": (1, "the look before the change, which has the lines"),
}


# `commands` with words of a verb that asks brokers, and without: then a verb asks REST.
TAG = re.compile(r"{% (?:url '(api:\w+)'[^%]*as api|commands \"(\w+)\" (api\S*) (\S+)((?: [^%]+?)?)) %}")
# Writes of REST that brokers and name servers take as well, and the verb that asks those; `apply` previews first.
BY_THE_CLUSTER = {
    "drain_broker": "drain", "undrain_broker": "undrain", "pause_failover": "ha pause", "resume_failover": "ha resume",
    "create_topic": "topics create", "update_topic": "topics set", "delete_topic": "topics delete",
    "send_message": "send", "resend_message": "messages resend", "deliver_message": "messages deliver",
    "delete_group": "groups delete", "set_group_mode": "groups mode", "resend_dead_letters": "dead-letters resend",
    "discard_dead_letters": "dead-letters discard", "update_broker_config": "config set",
    "change_master": "switchover", "settle_masters": "settle",
    "disconnect_client": "clients disconnect", "set_kv_entry": "kv set",
    "remove_kv_entry": "kv delete", "import_definitions": "definitions apply",
}  # fmt: skip


def plain(path: str) -> str:
    """A path below /api/v1 with {} for what stands in it."""
    below = path.removeprefix("/").removeprefix("api/v1").removeprefix("/").rstrip("/")
    return re.sub(r"{[^}]*}|<[^>]*>", "{}", below)


def writes() -> dict[str, tuple[str, str]]:
    """Operation's id → method and path."""
    paths = api.get_openapi_schema(path_prefix="/api/v1/")["paths"]
    return {
        operation["operationId"]: (method.upper(), plain(path))
        for path, methods in paths.items()
        for method, operation in methods.items()
        if method in ("post", "put", "patch", "delete")
    }


def has_verb(method: str, path: str) -> bool:
    return any(
        call.method == method and plain(call.path) == path for calls in CALLS.values() for call in calls.values()
    )


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


def test_each_line_of_curl_stands_below_one_of_gantry_admin() -> None:
    paths = {item.name: plain(route) for route, item in all_patterns() if route.startswith("api/v1")}
    without, seen = [], 0
    for template in sorted(TEMPLATES.rglob("*.html")):
        address = ""
        for name, method, _, _, words in TAG.findall(template.read_text(encoding="utf-8")):
            address = name.removeprefix("api:") or address
            if method:
                seen += 1
                if not words.strip() and not has_verb(method, paths[address]):
                    without.append(f"{template.name}: {method} {address}")
    assert seen > 40, "the tags are written otherwise now: adapt TAG"
    assert without == [], "make a verb in appliance/cli/admin/rest, or name the one that asks the brokers"


def test_each_write_of_rest_has_a_verb() -> None:
    without = {one for one, (method, path) in writes().items() if not has_verb(method, path)}
    assert without == set(BY_THE_CLUSTER)
    for words in BY_THE_CLUSTER.values():
        noun, *verb = words.split()
        commands = importlib.import_module(f"appliance.cli.admin.{NOUNS[noun][0]}").COMMANDS[noun]
        assert (verb[0] if verb else "") in commands, words


async def test_what_a_curl_line_says_is_taken_by_rest(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("admin")
    user = await User.objects.aget(username="admin")
    rest = await api_for(user, "admin")
    pages = ["/alerts/rules/new", "/alerts/mutes/new", "/alerts/channels/new/mail", "/tokens"]
    for page in pages:
        shown_once = (await client.get(page)).content.decode()  # the next look may be of the next second
        [line] = curl_lines(shown_once)
        words = shlex.split(line)
        body = json.loads(words[words.index("-d") + 1])
        body |= {"settings": body["settings"] | MAIL} if "settings" in body else {}
        address = next(word for word in words if word.startswith("http")).removeprefix("http://testserver/api/v1")
        status, answer = await rest.call(words[words.index("-X") + 1].lower(), address, body)
        assert status in (200, 201), (page, body, answer)
        [admin] = admin_lines(shown_once)
        assert await called(admin) == (words[words.index("-X") + 1], address, without_secrets(body)), page
    rule, channel = await AlertRule.objects.alatest("pk"), await AlertChannel.objects.alatest("pk")
    for page, expected in (
        (f"/alerts/rules/{rule.pk}", {"PUT": f"/alerts/rules/{rule.pk}", "DELETE": f"/alerts/rules/{rule.pk}"}),
        (f"/alerts/channels/{channel.pk}", {"PUT": f"/alerts/channels/{channel.pk}",
                                            "POST": f"/alerts/channels/{channel.pk}/test"}),
        (f"/alerts/channels/{channel.pk}/delete", {"DELETE": f"/alerts/channels/{channel.pk}"}),
    ):  # fmt: skip
        shown = curl_lines((await client.get(page)).content.decode())
        for method, address in expected.items():
            assert any(f"-X {method} " in line and f"/api/v1{address}" in line for line in shown), (page, shown)
    assert "password" not in " ".join(curl_lines((await client.get("/alerts")).content.decode()))


MAIL = {"host": "mail.example", "sender": "a@example.org", "recipients": "b@example.org"}


class Noted(Rest):
    """A dashboard that only keeps what it is asked."""

    asked: tuple[str, str, Any]

    async def call(self, method: str, path: str, body: Any = None, query: Any = None) -> Any:
        self.asked = method, path, body
        return {}


async def called(line: str) -> tuple[str, str, Any]:
    """The call that a line of `gantry admin` makes; a secret that it asks for is left out."""
    words = shlex.split(line)
    assert words[:2] == ["gantry", "admin"]
    arguments = main.parse(words[2], words[3:])
    assert arguments.dashboard == "http://testserver"
    arguments.asked = []
    noted = Noted(arguments.dashboard, "gmq_x", timeout_s=1)
    await arguments.command.act(noted, arguments)
    return noted.asked


def without_secrets(body: dict[str, Any]) -> dict[str, Any]:
    if "settings" not in body:
        return body
    return body | {"settings": {key: value for key, value in body["settings"].items() if key not in MAIL}}


def admin_lines(page: str) -> list[str]:
    return [html.unescape(line) for line in re.findall(r"<code>(gantry admin .*?)</code>", page)]


def curl_lines(page: str) -> list[str]:
    return [html.unescape(line) for line in re.findall(r"<code>(curl .*?)</code>", page)]
