"""Definitions: what is exported can be imported, what is planned is done, and nothing goes without being asked."""

from __future__ import annotations

import functools
import html
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from django.conf import settings
from django.test import AsyncClient
from pydantic import ValidationError

from appliance.cli.admin.command import Shown
from appliance.cli.admin.main import parse
from appliance.cli.admin.rest.client import Rest
from dashboard.alerts.editing import save_channel
from dashboard.cluster.gateway import Gateway
from dashboard.definitions.document import DocumentRefused, items_of, read
from dashboard.definitions.importing import exported, imported, planned
from dashboard.definitions.pages import AccountForm
from dashboard.definitions.plan import plan_of
from dashboard.definitions.problems import LOOKS_MAX, PROBLEMS_MAX, Place, problems_of
from dashboard.definitions.schemas import Definitions
from dashboard.models.alerts import AlertChannel, AlertRule
from dashboard.models.audit import AuditEntry, Result, Way
from dashboard.models.management import User
from dashboard.topics.changes import Asker
from gantrymq import AdminClient, Credentials, Message, Producer
from gantrymq.errors import ConfigError, ResponseError
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.appliance.acl.cluster import ADMIN, LOW, guarded
from tests.dashboard.conftest import Api, Client, Topic, api_for, gateway_to
from tests.dashboard.groups.group_members import waited_for
from tests.harness import ServingCluster

ASKER = Asker("ada", Way.PAGE, "127.0.0.1", "")


def text_of(**sections: Any) -> str:
    return json.dumps({"version": 1, **sections})


async def test_an_export_changes_nothing_and_holds_every_section(
    make_topic: Topic, gateway: Gateway, admin: User
) -> None:
    await make_topic("def-orders", queues=3)
    await gateway.topics.change("def-orders", retention_ms=60_000)
    await (await gateway.calls.admin()).groups.create(SubscriptionGroupConfig("def-readers", retry_max_times=3))
    api = await api_for(admin, "config")
    status, answer = await api.call("get", "/definitions")
    document = yaml.safe_load(answer["text"])
    assert status == 200 and document.keys() >= {"version", "topics", "groups", "alert_rules"}
    [topic] = [one for one in document["topics"] if one["name"] == "def-orders"]
    assert topic == {
        "name": "def-orders", "write_queues": 3, "read_queues": 3, "order": False, "retention_ms": 60_000,
        "retention_messages": 0, "perm": "read-write",
    }  # fmt: skip
    [group] = [one for one in document["groups"] if one["name"] == "def-readers"]
    assert group["retry_max_times"] == 3
    status, plan = await api.call("post", "/definitions", {"text": answer["text"], "delete": True, "dry_run": True})
    assert (status, plan["changes"], plan["left_alone"], plan["is_done"]) == (200, [], [], False)


async def test_an_import_creates_and_changes_and_a_second_one_has_nothing_to_do(
    make_topic: Topic, gateway: Gateway, admin: User
) -> None:
    await make_topic("def-old", queues=2)
    text = text_of(
        topics=[{"name": "def-old", "read_queues": 4, "write_queues": 4}, {"name": "def-new", "perm": "read"}],
        groups=[{"name": "def-group", "retry_max_times": 5}],
        alert_rules=[{"name": "def-late", "kind": "group-behind", "threshold": 300}],
    )
    api = await api_for(admin, "config")
    _, plan = await api.call("post", "/definitions", {"text": text, "dry_run": True})
    assert [(one["what"], one["name"]) for one in plan["changes"]] == [
        ("change", "def-old"), ("create", "def-new"), ("create", "def-group"), ("create", "def-late"),
    ]  # fmt: skip
    assert plan["changes"][0]["before"] == {"read_queues": 2, "write_queues": 2}
    assert "def-new" not in {row.name for row in (await gateway.topics.list()).rows}
    status, done = await api.call("post", "/definitions", {"text": text, "digest": plan["digest"]})
    assert status == 200 and {one["result"] for one in done["changes"]} == {"done"}, done
    assert (await gateway.topics.get("def-old")).first_settings.write_queues == 4
    assert (await gateway.topics.get("def-new")).first_settings.perm_text == "read only"
    assert (await AlertRule.objects.aget(name="def-late")).threshold == 300
    assert (await planned(gateway, text, delete=False)).changes == ()
    written = {one.target: one.action async for one in AuditEntry.objects.all()}
    assert written["def-old"] == "topic changed" and written["def-group"] == "group created or changed"
    assert written[""] == "definitions imported"


async def test_nothing_is_deleted_unless_asked_and_then_only_in_named_sections(
    make_topic: Topic, gateway: Gateway, admin: User
) -> None:
    await make_topic("def-gone")
    await (await gateway.calls.admin()).groups.create(SubscriptionGroupConfig("def-stays"))
    rows = (await gateway.topics.list()).rows
    text = text_of(topics=[{"name": row.name} for row in rows if row.kind == "normal" and row.name != "def-gone"])
    plan = await planned(gateway, text, delete=False)
    assert plan.changes == () and ("topics", "def-gone") in plan.left_alone
    done = await imported(gateway, text, ASKER, delete=True)
    assert [(one.change.what, one.change.name, one.is_done) for one in done.dealt] == [("delete", "def-gone", True)]
    assert "def-stays" in (await gateway.groups.settings(patiently=True))[0]


async def test_an_import_after_something_else_changed_does_nothing(make_topic: Topic, admin: User) -> None:
    await make_topic("def-moved", queues=2)
    api = await api_for(admin, "config")
    text = text_of(topics=[{"name": "def-moved", "read_queues": 4, "write_queues": 4}])
    _, plan = await api.call("post", "/definitions", {"text": text, "dry_run": True})
    _, other = await api.call("post", "/definitions", {"text": text.replace("4", "3")})
    assert other["is_done"]
    status, refusal = await api.call("post", "/definitions", {"text": text, "digest": plan["digest"]})
    assert (status, "after the preview" in refusal["detail"]) == (409, True)


async def test_one_change_that_fails_stops_no_other_and_is_told_before(gateway: Gateway, admin: User) -> None:
    text = text_of(
        topics=[{"name": "%RETRY%x"}, {"name": "def-after"}, {"name": "def-odd", "read_queues": 1, "write_queues": 2}],
        alert_rules=[
            {"name": "def-r", "kind": "disk-used", "threshold": 90, "channels": ["nowhere"]},
            {"name": "def-q"},
        ],
    )
    plan = await planned(gateway, text, delete=False)
    assert {one.name for one in plan.changes if one.refusal} == {"%RETRY%x", "def-odd", "def-r", "def-q"}
    done = await imported(gateway, text, ASKER, delete=False)
    assert [one.change.name for one in done.dealt if one.is_done] == ["def-after"]
    failed = await AuditEntry.objects.filter(target="def-r").alatest("number")
    assert failed.result == Result.FAILED and "nowhere" in failed.told


async def test_channels_keep_their_secrets_and_give_none_out(gateway: Gateway, admin: User) -> None:
    from asgiref.sync import sync_to_async

    mail = {"host": "mail.example", "port": 587, "security": "starttls", "username": "u", "password": "hush-hush-hush",
            "sender": "a@b.example", "recipients": "c@d.example"}  # fmt: skip
    await sync_to_async(save_channel)("def-mail", "mail", mail, True)
    await sync_to_async(save_channel)("def-chat", "slack", {"url": "https://hooks.example/T0/very-secret"}, True)
    text = await exported(gateway)
    assert "hush" not in text and "very-secret" not in text and "hooks.example" not in text
    assert (await planned(gateway, text, delete=True)).changes == ()
    changed = text.replace("sender: a@b.example", "sender: z@b.example").replace("c@d.example", "e@f.example")
    done = await imported(gateway, changed, ASKER, delete=False)
    assert [one.is_done for one in done.dealt] == [True], done.dealt
    known = (await AlertChannel.objects.aget(name="def-mail")).known_settings()
    assert (known["password"], known["sender"]) == ("hush-hush-hush", "z@b.example")
    elsewhere = await imported(gateway, changed.replace("mail.example", "other.example"), ASKER, delete=False)
    assert not elsewhere.dealt[0].is_done and "not sent to another server" in elsewhere.dealt[0].told
    switched = re.sub(r"(name: def-chat\n  kind: slack\n)", r"\1  is_on: false\n", changed).replace(
        "  is_on: true\n", ""
    )
    await imported(gateway, switched, ASKER, delete=False)
    chat = await AlertChannel.objects.aget(name="def-chat")
    assert (chat.is_on, chat.known_settings()["url"]) == (False, "https://hooks.example/T0/very-secret")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- a", "mapping of sections"),
        ("topics: [", "line 2"),
        ("topics:\n- name: a\n  wriet_queues: 3\n", "topics, 1 (a), wriet_queues"),
        ("topics:\n- {name: a, write_queues: '3'}\n", "topics, 1 (a), write_queues"),
        ("topics:\n- {name: a}\n- {name: a}\n", "a is there twice"),
        ("topics: &x [{name: a}]\ngroups: *x\n", "Aliases"),
        ("topics: " + "[" * 50 + "]" * 50, "nested too deeply"),
        ("x: !!python/object/apply:os.system [ls]", "YAML"),
        ("version: 2", "version"),
        ("accounts:\n- {access_key: 'a,b'}\n", "access_key"),
        ("#" * ((1 << 20) + 1), "larger than"),
        ("name,wriet_queues\na,3\n", "topics, 1 (a), wriet_queues"),
        ("name,write_queues\na,3\nb,many\n", "topics, 2 (b), write_queues"),
        ("name,write_queues\na,3,4\n", "Line 2 has more cells"),
        ("name\na\na\n", "a is there twice"),
        ("name\n" + "x" * 200_000, "line 2"),
        ("name,write_queues\na," + "1" * 5000, "topics, 1 (a), write_queues"),
        ("name: a\n", "name"),
        ("\ntopics: !!int ''", "line 2"),
        ("\ntopics: !!float ''", "line 2"),
        ("\ntopics: !!bool maybe", "line 2: maybe is no value of its kind"),
        ("\ntopics: !!timestamp soon", "line 2: soon is no value of its kind"),
        ("topics:\n- name: a\n  perm: 2024-13-45", "line 3: 2024-13-45 is no value of its kind"),
        ("topics:\n- {name: a, write_queues: 1:30}", 'write_queues: "1:30" does not fit'),
        ("topics:\n- {name: a, write_queues: 1" + ":1" * 500_000 + ".5}", 'write_queues: "1:1:1:'),
        ("topics:\n- {name: a, '[key]': 1}", "topics, 1 (a), [key]: There is no such field."),
        ("alert_rules:\n- {name: a, kind: group-lag, threshold: .inf}", "threshold: Infinity does not fit"),
        ("alert_rules:\n- {name: a, kind: group-lag, threshold: 1, clear: .inf}", "clear: Infinity does not fit"),
        ("accounts:\n- {access_key: a, topic_perms: {'[key]': X}}", 'topic_perms, [key]: "X" does not fit'),
    ],
)
def test_a_document_that_is_none_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(DocumentRefused, match=re.escape(told)):
        read(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "# ours\n\ntopics:\n- name: a\n  perm: all\n",
            'Line 5, topics, 1 (a), perm: "all" does not fit: it has to be one of read-write, read, write.',
        ),
        (
            "topics: [{name: a, write_queues: 257}]",
            "Line 1, topics, 1 (a), write_queues: 257 does not fit: it has to be a whole number from 1 to 256.",
        ),
        (
            "name,write_queues\na,3\n\nb,many\n",
            'Line 4, topics, 2 (b), write_queues: "many" does not fit: it has to be a whole number from 1 to 256.',
        ),
        ("topics:\n- perm: read\n", "Line 2, topics, 1, name: It is missing; it is text, 1 to 127 characters."),
        (
            "tiopics: []",
            "Line 1, tiopics: There is no such field. There are: version, topics, groups, accounts, "
            "alert_channels, alert_rules.",
        ),
        (
            "accounts:\n- access_key: a\n  topic_perms:\n    b c: PUB\n",
            'Line 4, accounts, 1 (a), topic_perms, b c: "b c" does not fit: it has to be text without spaces, commas '
            "or equals signs.",
        ),
        (
            "accounts:\n- access_key: a\n  white_remote_address: nonsense!\n",
            "Line 3, accounts, 1 (a), white_remote_address: Write addresses as brokers read them: 10.0.0.7, "
            "10.0.0.*, 10.0.0.1-20 or 2001:db8::*, several with commas.",
        ),
        ("topics: [a]", "Line 1, topics, 1: \"a\" does not fit: it has to be fields with their values: "),
        ("topics:\n- name: a\n  perm: all\n  perm: none", 'Line 4, topics, 1 (a), perm: "none" does not fit: '),
        # What YAML has and JSON has not: names that are no text, numbers of any length.
        ("topics:\n- {name: a, 7: x}", "Line 2, topics, 1 (a), 7: There is no such field. There are: write_queues, "),
        ("topics:\n- name: {2026-12-01: x}", "Line 2, topics, 1 (…), name: … does not fit: it has to be text, "),
        ("topics:\n- name: 0x" + "f" * 9999, "Line 2, topics, 1 (…), name: … does not fit: it has to be text, "),
        (
            "accounts:\n- access_key: a\n  topic_perms: {7: PUB}",
            "Line 3, accounts, 1 (a), topic_perms, 7: 7 does not fit: it has to be text without spaces, ",
        ),
        (
            "alert_channels:\n- name: a\n  settings: {2026-12-01: x}",
            "Line 3, alert_channels, 1 (a), settings, datetime.date(2026, 12, 1): \"2026-12-01\" does not fit: ",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_its_line_and_what_is_allowed(text: str, told: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read(text)
    [problem] = refused.value.problems
    assert problem.startswith(told)


def test_of_many_problems_the_first_ones_are_looked_up_and_no_sentence_is_long() -> None:
    """Each look for a line walks through the document: 60 000 of them would take minutes."""
    looks: list[Place] = []
    values = {"topics": [{"name": "x" * 100_000, **{f"{number:03}" * 1000: 1 for number in range(500)}}]}
    with pytest.raises(ValidationError) as refused:
        Definitions.model_validate(values)
    problems = problems_of(refused.value, values, lambda place: looks.append(place) or 1)  # type: ignore[func-returns-value]
    assert len(problems) == PROBLEMS_MAX + 1 and problems[-1] == "…" and len(looks) == LOOKS_MAX
    assert max(map(len, problems)) < 1000


def test_a_retention_that_no_form_takes_but_another_tool_has_set_is_a_definition() -> None:
    """A document that was exported can be imported."""
    assert read("topics:\n- {name: a, retention_ms: 9007199254740992}").topics[0].retention_ms == 1 << 53


def test_problems_are_a_sentence_each_and_not_endless() -> None:
    with pytest.raises(DocumentRefused) as refused:
        read("name,write_queues\n" + "".join(f"t{number},0\n" for number in range(100)))
    assert len(refused.value.problems) == 21 and refused.value.problems[-1] == "…"


@pytest.mark.parametrize("by", [",", ";", "\t"])
def test_a_table_of_topics_is_a_document(by: str) -> None:
    rows = [
        ('"name"', "write_queues", "order", "perm"), ("7", "3", "true", "read"), ("", "", "", ""), (' "b"', "", "", ""),
    ]  # fmt: skip
    document = read("\ufeff" + "\r\n".join(by.join(row) for row in rows))
    assert items_of(document) == {
        "topics": {"7": {"name": "7", "write_queues": 3, "order": True, "perm": "read"}, "b": {"name": "b"}}
    }


async def test_a_tables_topics_are_made_by_page_rest_and_command(
    log_in: Client, gateway: Gateway, tmp_path: Path
) -> None:
    def table(way: str) -> str:
        return f"name,write_queues,read_queues\ntable-{way}-a,2,3\ntable-{way}-b,1,1\n"

    client = await log_in("admin")
    page = (await client.post("/definitions", {"text": table("page")})).content.decode()
    digest = re.search(r'name="digest" value="(\w+)"', page)[1]  # type: ignore[index]
    page = (await client.post("/definitions", {"text": table("page"), "digest": digest})).content.decode()
    assert "table-page-a" in page and "tag-problem" not in page
    api = await api_for(await User.objects.aget(username="admin"), "config")
    status, answer = await api.call("post", "/definitions", {"text": table("rest")})
    assert status == 200 and [one["result"] for one in answer["changes"]] == ["done", "done"], answer
    file = tmp_path / "topics.csv"
    file.write_text(table("shell"))
    arguments = parse("definitions", ["apply", str(file)])
    await arguments.command.plan(Bridge(api), arguments)
    assert not (await arguments.command.act(Bridge(api), arguments)).is_failure
    made = {row.name: row.settings[0] for row in (await gateway.topics.list()).rows if row.name.startswith("table-")}
    assert {name: (one.write_queues, one.read_queues) for name, one in made.items()} == {
        f"table-{way}-{which}": queues for way in ("page", "rest", "shell") for which, queues in
        (("a", (2, 3)), ("b", (1, 1)))
    }  # fmt: skip


def test_what_is_not_said_stays_and_what_differs_between_brokers_is_a_change() -> None:
    there = {"topics": {"a": {"write_queues": 2, "perm": "read"}, "b": {"perm": "read"}}}
    plan = plan_of(there, {"topics": {"a": {"name": "a", "perm": "read"}, "b": {"write_queues": 2}}}, delete=True)
    assert [(one.name, one.before, one.after) for one in plan.changes] == [
        ("b", {"write_queues": None}, {"write_queues": 2})
    ]


async def test_readers_and_operators_get_no_definitions(users: dict[str, User], gateway: Gateway) -> None:
    for role in ("reader", "operator"):
        api = await api_for(users[role], "config")
        assert (await api.call("get", "/definitions"))[0] == 403
        assert (await api.call("post", "/definitions", {"text": "version: 1"}))[0] == 403


async def test_a_page_previews_and_does_what_it_showed(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    await make_topic("def-page", queues=2)
    client = await log_in("admin")
    page = (await client.get("/definitions")).content.decode()
    assert "gantry admin definitions export" in html.unescape(page)
    await client.post("/preferences/language", {"language": "zh-hans", "back": "/"})
    for shown, words in ((page, "Choose a file"), ((await client.get("/definitions")).content.decode(), "选择文件")):
        [button] = re.findall(r'<button type="button" data-into="id_text"[^>]*>([^<]+)</button>', shown)
        [chooser] = re.findall(r'<input type="file"[^>]*>', shown)
        assert button.startswith(words) and " hidden" in chooser, "a browser's own button speaks its own language"
    await client.post("/preferences/language", {"language": "en", "back": "/"})
    assert b"def-page" in (await client.get("/definitions/export.yaml")).content
    rows = [row.name for row in (await gateway.topics.list()).rows if row.kind == "normal" and row.name != "def-page"]
    text = text_of(topics=[{"name": "def-shown", "write_queues": 3}, *({"name": name} for name in rows)])
    answer = await client.post("/definitions", {"text": "topics: ["})
    assert answer.status_code == 422 and "not YAML" in answer.content.decode()
    form = {"text": text, "delete": "on"}
    page = (await client.post("/definitions", form)).content.decode()
    assert "def-shown" in page and "def-page" in page
    digest = re.search(r'name="digest" value="(\w+)"', page)[1]  # type: ignore[index]
    answer = await client.post("/definitions", form | {"digest": digest, "typed_name": "7"})
    assert answer.status_code == 422 and "Nothing was changed" in answer.content.decode()
    answer = await client.post("/definitions", form | {"digest": digest, "typed_name": "1"})
    assert answer.status_code == 200 and "Imported" in answer.content.decode()
    names = {row.name for row in (await gateway.topics.list()).rows}
    assert "def-shown" in names and "def-page" not in names


# ---- accounts


@pytest_asyncio.fixture(loop_scope="session")
async def guarded_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, admin: User
) -> AsyncIterator[tuple[Gateway, ServingCluster]]:
    """A cluster with accounts, and the dashboard's gateway to it, which signs."""
    credentials = tmp_path / "own.yml"
    credentials.write_text(f"accessKey: {ADMIN.access_key}\nsecretKey: {ADMIN.secret_key}\n")
    async with guarded(tmp_path, credentials_file=credentials) as running:
        monkeypatch.setattr(type(settings.APPLIANCE), "client_credentials", ADMIN)
        async with gateway_to(running.namesrv_address, monkeypatch, ADMIN) as instance:
            yield instance, running


async def test_accounts_keep_the_secret_that_is_shown_once(
    guarded_gateway: tuple[Gateway, ServingCluster],
) -> None:
    gateway, running = guarded_gateway
    before = await exported(gateway)
    assert ADMIN.access_key not in before, "the dashboard's own account is no definition"
    text = text_of(accounts=[{"access_key": "shop-app", "topic_perms": {"orders": "PUB|SUB"}}])
    done = await imported(gateway, text, ASKER, delete=False)
    assert [one.is_done for one in done.dealt] == [True], done.dealt
    secret = done.secrets["shop-app"]
    again = await exported(gateway)
    assert secret not in again and "orders: PUB|SUB" in again
    assert (await planned(gateway, again, delete=True)).changes == ()
    changed = text_of(accounts=[{"access_key": "shop-app", "topic_perms": {"orders": "SUB"}, "admin": True}])
    done = await imported(gateway, changed, ASKER, delete=False)
    assert [one.is_done for one in done.dealt] == [True] and done.secrets == {}
    async with AdminClient(running.namesrv_address, credentials=Credentials("shop-app", secret)) as application:
        assert "shop-app" in [
            one.access_key for one in (await application.accounts.all_at(running.broker_address)).accounts
        ]
    own = text_of(accounts=[{"access_key": ADMIN.access_key, "admin": False}])
    [refused] = (await planned(gateway, own, delete=False)).changes
    assert "signs with this account" in refused.refusal
    done = await imported(gateway, own, ASKER, delete=True)
    assert {one.change.name: one.is_done for one in done.dealt}["shop-app"]
    async with AdminClient(running.namesrv_address, credentials=Credentials("shop-app", secret)) as application:
        with pytest.raises(ResponseError):
            await application.accounts.all_at(running.broker_address)


async def test_a_cluster_without_access_control_takes_and_exports_no_accounts(gateway: Gateway, admin: User) -> None:
    assert "accounts" not in yaml.safe_load(await exported(gateway))
    with pytest.raises(DocumentRefused, match=r"accounts: .*aclEnable"):
        await planned(gateway, text_of(accounts=[{"access_key": "shop-app"}]), delete=False)


# ---- the shell


class Bridge(Rest):
    """REST of this process, for the shell's verbs."""

    def __init__(self, api: Api) -> None:
        super().__init__("http://127.0.0.1:8080", "gmq_x", timeout_s=1)
        self._api = api

    async def call(self, method: str, path: str, body: Any = None, query: Any = None) -> Any:
        status, answer = await self._api.call(method.lower(), path, body)
        assert status == 200, answer
        return answer


async def test_a_file_of_a_repository_is_compared_and_applied(gateway: Gateway, admin: User, tmp_path: Path) -> None:
    rest = Bridge(await api_for(admin, "config"))
    file = tmp_path / "definitions.yaml"
    file.write_text("topics:\n- name: def-shell\n  write_queues: 2\n")

    async def shell(*words: str) -> Shown:
        arguments = parse("definitions", list(words))
        if arguments.command.loses:
            await arguments.command.plan(rest, arguments)
        return await arguments.command.act(rest, arguments)

    shown = await shell("diff", str(file))
    assert shown.is_failure and "def-shell" in "\n".join(shown.lines)
    shown = await shell("apply", str(file))
    assert not shown.is_failure and "done" in "\n".join(shown.lines)
    assert not (await shell("diff", str(file))).is_failure
    file.write_text("\n".join((await shell("export")).lines))
    assert (await shell("diff", str(file), "--delete")).lines == ["nothing differs"]
    with pytest.raises(ConfigError, match="can't be read"):
        await shell("diff", str(tmp_path / "nowhere.yaml"))


async def test_a_page_without_access_control_says_how_to_require_accounts(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("admin")
    page = (await client.get("/accounts")).content.decode()
    assert "accept clients without an account" in page and "--accounts" in page
    page = (await client.get("/accounts", headers={"accept-language": "zh-hans"})).content.decode()
    assert "未启用访问控制" in page, "the broker's own words are known (dashboard/cluster/errors.py)"


async def browser_of(user: User) -> AsyncClient:
    client = AsyncClient()
    await client.aforce_login(user)
    session = await client.asession()
    await session.aupdate({"started_at": int(time.time()), "touched_at": int(time.time())})
    await session.asave()
    return client


def hidden_in(page: str) -> dict[str, str]:
    """What the form of a preview sends."""
    found = re.findall(r'type="hidden" name="(text|digest|access_key)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
async def test_an_account_that_was_not_saved_is_said_in_its_own_form(
    guarded_gateway: tuple[Gateway, ServingCluster], admin: User, language: str
) -> None:
    gateway, _running = guarded_gateway
    client = await browser_of(admin)
    await client.post("/preferences/language", {"language": language, "back": "/"})
    saved, changed, other, failed, box, no_yaml = {
        "en": ("The account is saved", "Something changed after the preview", "This is not a preview of shop-app",
               "Saving the account failed", "Import a document", "This is not YAML"),
        "zh-hans": ("账号已保存", "预览之后情况有变", "这不是 shop-app 的预览", "账号保存失败", "导入文档",
                    "这不是 YAML"),
    }[language]  # fmt: skip
    fields = {"access_key": "shop-app", "default_topic_perm": "DENY", "default_group_perm": "DENY"}
    typed = hidden_in((await client.post("/accounts", fields | {"topic_perms": "orders=SUB"})).content.decode())
    two = text_of(accounts=[{"access_key": "shop-app"}, {"access_key": "another"}])
    for posted, words in (
        ({"text": two}, other), ({"text": text_of(topics=[{"name": "t"}])}, other), ({"text": "- ]"}, no_yaml),
        ({"access_key": "another"}, other.replace("shop-app", "another")),
    ):  # fmt: skip
        answer = await client.post("/accounts", typed | posted)
        page = answer.content.decode()
        assert answer.status_code == 422 and words in page and box not in page, posted
        assert 'name="topic_perms"' in page
    assert "another" not in await exported(gateway)
    await imported(gateway, text_of(accounts=[{"access_key": "shop-app", "admin": True}]), ASKER, delete=False)
    answer = await client.post("/accounts", typed)
    page = answer.content.decode()
    assert (answer.status_code, changed in page, box in page) == (422, True, False)
    assert "orders=SUB</textarea>" in page, "what was typed is still there"
    own = {"access_key": ADMIN.access_key}
    text = text_of(accounts=[own | {"default_topic_perm": "DENY"}])
    digest = (await planned(gateway, text, delete=False)).digest
    page = (await client.post("/accounts", own | {"text": text, "digest": digest})).content.decode()
    assert failed in page and saved not in page


async def test_the_form_of_an_account_says_what_is_wrong_before_a_preview(
    guarded_gateway: tuple[Gateway, ServingCluster], admin: User
) -> None:
    client = await browser_of(admin)
    fields = {"access_key": "shop-app", "default_topic_perm": "DENY", "default_group_perm": "DENY"}
    for wrong, words in (
        ({"access_key": "a b"}, "An access key has no spaces"),
        ({"access_key": "abc"}, "An access key has at least"),
        ({"access_key": ADMIN.access_key}, "The dashboard signs with this account."),
        ({"white_remote_address": "10.0.0.1 10.0.0.2"}, "Write addresses as brokers read them"),
        ({"white_remote_address": "nonsense!"}, "Write addresses as brokers read them"),
        ({"white_remote_address": "10.0.0.999"}, "Write addresses as brokers read them"),
        ({"topic_perms": "orders=ALL"}, "the permission is one of"),
    ):
        answer = await client.post("/accounts", fields | wrong)
        page = answer.content.decode()
        assert (answer.status_code, hidden_in(page)) == (422, {}), "nothing can be saved"
        form = page[page.index('id="edit"') :]
        assert words in form and 'action="#edit"' in form, "and the browser shows that part of the page"


async def test_a_page_lists_broker_accounts_and_previews_a_change(
    guarded_gateway: tuple[Gateway, ServingCluster], admin: User
) -> None:
    gateway, _running = guarded_gateway
    text = text_of(accounts=[{"access_key": "shop-app", "topic_perms": {"orders": "PUB|SUB"}}])
    await imported(gateway, text, ASKER, delete=False)
    client = await browser_of(admin)
    page = (await client.get("/accounts")).content.decode()
    assert ADMIN.access_key not in page, "the dashboard's own account is not changed here"
    assert "?key=shop-app#edit" in page
    page = (await client.get("/accounts?key=shop-app")).content.decode()
    assert "orders=PUB|SUB</textarea>" in page and "readonly" in page
    fields = {"access_key": "shop-app", "default_topic_perm": "DENY", "default_group_perm": "DENY"}
    page = (await client.post("/accounts", fields | {"topic_perms": "orders=SUB"})).content.decode()
    assert '<code>topic_perms</code> <span class="name">orders</span>: PUB|SUB → SUB' in page
    assert "loses PUB of topic orders" in page and "No connected client uses this account" in page
    assert ">Save<" in page and "Import" not in page, "it is an account that is changed, and no document"
    answer = await client.post("/accounts", hidden_in(page))
    assert "The account is saved" in answer.content.decode()
    page = (await client.get("/accounts?key=shop-app")).content.decode()
    assert "orders=SUB</textarea>" in page


@pytest.mark.parametrize(
    ("perms", "told"),
    [
        ("orders=READ", "the permission is one of DENY, PUB, SUB, PUB|SUB"),
        ("or ders=PUB", "Write each line as name=PERMISSION."),
        ("orders=PUB\n\norders = SUB", "orders is there twice."),
    ],
)
def test_a_line_of_an_accounts_form_that_is_no_permission_is_refused(perms: str, told: str) -> None:
    fields = {"access_key": "a", "default_topic_perm": "DENY", "default_group_perm": "DENY"}
    assert AccountForm(fields | {"topic_perms": " orders = PUB|SUB \n"}).is_valid()
    form = AccountForm(fields | {"topic_perms": perms})
    assert told in form.errors["topic_perms"][0]


def test_the_form_of_an_account_leaves_alone_what_brokers_have_differently() -> None:
    there = {"admin": False, "default_topic_perm": "SUB", "group_perms": {}, "white_remote_address": ""}
    form = AccountForm({"access_key": "a", "default_topic_perm": "DENY"}, item=there)
    assert form.is_valid() and form.differing == ["topic_perms", "default_group_perm"]
    [said] = items_of(form.document())["accounts"].values()
    assert said.keys() == {"access_key", *there}


async def test_a_preview_says_what_an_account_loses_and_who_is_connected_with_it(
    guarded_gateway: tuple[Gateway, ServingCluster], admin: User, tmp_path: Path
) -> None:
    gateway, running = guarded_gateway
    text = text_of(accounts=[{"access_key": LOW.access_key, "topic_perms": {}}])
    api = await api_for(admin, "config")
    async with Producer(running.namesrv_address, group="low", credentials=LOW) as producer:
        await producer.send(Message("TopicLow", b"x"))

        async def who_loses() -> Any:
            answer = (await api.call("post", "/definitions", {"text": text, "dry_run": True}))[1]
            return answer["changes"][0]["losses"]

        await waited_for(functools.partial(_has_clients, who_loses))
        losses = await who_loses()
        assert losses["rights"] == [{"scope": "topic", "name": "TopicLow", "perm": "PUB|SUB"}]
        assert losses["clients"] == [producer.client_id]
        file = tmp_path / "low.json"
        file.write_text(text)
        shown = "\n".join((await parse_and_plan(api, str(file))).lines)
        assert "lowKey123 loses PUB|SUB of topic TopicLow" in shown and producer.client_id in shown
        before = await planned(gateway, text, delete=False)
    assert before.digest == (await planned(gateway, text, delete=False)).digest, "who is connected changes no plan"


async def _has_clients(who_loses: Callable[[], Awaitable[Any]]) -> bool:
    return bool((await who_loses())["clients"])


async def parse_and_plan(api: Api, *words: str) -> Shown:
    arguments = parse("definitions", ["apply", *words])
    return await arguments.command.plan(Bridge(api), arguments)  # type: ignore[misc, no-any-return]
