"""The page Alerts and REST: rules, channels whose secrets never come out, mutes, and what would have rung."""

from __future__ import annotations

import json
import re
import time
from array import array
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.alerts.rules import ensure_presets
from dashboard.history.block_builder import HOUR, MINUTE
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertMute, AlertRow, AlertRule
from dashboard.models.audit import AuditEntry
from dashboard.models.history import HistoryBlock
from dashboard.models.management import User
from tests.dashboard.alerts.receivers import http_receiver
from tests.dashboard.conftest import Client, api_for

pytestmark = pytest.mark.usefixtures("may_send_to_loopback")

RULE = {
    "name": "orders far behind", "kind": "group-lag", "threshold": 500, "clear": 100, "for_s": 30,
    "pattern": "orders-*",
}  # fmt: skip
URL = "https://hooks.example/services/T0001/very-secret-part"


async def text_of(client: Any, address: str) -> str:
    return str((await client.get(address)).content.decode())


async def test_the_first_rules_are_on_from_the_start_and_a_deleted_one_comes_back_by_undo_only(log_in: Client) -> None:
    await sync_to_async(ensure_presets)()
    rules = [row async for row in AlertRule.objects.filter(is_on=True)]
    assert {row.kind for row in rules} == {
        "group-behind", "group-alone", "group-rising", "dead-letters", "disk-full-in", "disk-used", "broker-silent",
        "slave-behind", "no-successor", "in-sync-small", "etcd-slow", "failover-paused", "etcd-full",
    }  # fmt: skip
    client, gone = await log_in("operator"), rules[0]
    await client.post(f"/alerts/rules/{gone.pk}/do", {"do": "delete"})
    await sync_to_async(ensure_presets)()
    assert await AlertRule.objects.filter(deleted_at=None).acount() == 12
    assert "Undo" in await text_of(client, "/alerts")
    await client.post(f"/alerts/rules/{gone.pk}/do", {"do": "restore"})
    assert await AlertRule.objects.filter(deleted_at=None).acount() == 13
    await client.post(f"/alerts/rules/{gone.pk}/do", {"do": "off"})
    assert not (await AlertRule.objects.aget(pk=gone.pk)).is_on
    actions = [entry.action async for entry in AuditEntry.objects.order_by("number")]
    assert actions == ["alert rule deleted", "alert rule restored", "alert rule switched off"]


async def test_a_rule_is_made_by_form_and_what_makes_no_sense_is_refused(log_in: Client) -> None:
    client = await log_in("operator")
    form = RULE | {"for_s": "30 s", "clear_s": "1 min", "level": "2", "is_on": "on"}
    answer = await client.post("/alerts/rules/new", form | {"clear": "900"})
    assert answer.status_code == 422 and "resolves at a number below it" in answer.content.decode()
    assert (await client.post("/alerts/rules/new", form | {"threshold": "nan"})).status_code == 422
    assert (await client.post("/alerts/rules/new", form)).status_code == 302
    [row] = [row async for row in AlertRule.objects.all()]
    assert (row.threshold, row.clear, row.for_s, row.clear_s, row.level) == (500, 100, 30, 60, 2)
    assert "orders far behind" in await text_of(client, "/alerts")
    assert 'value="30 s"' in await text_of(client, f"/alerts/rules/{row.pk}")
    at_once = form | {"name": "at once", "for_s": "0 s", "clear_s": "0 s"}
    assert (await client.post("/alerts/rules/new", at_once)).status_code == 302, "as REST takes 0"
    row = await AlertRule.objects.aget(name="at once")
    assert (row.for_s, row.clear_s) == (0, 0)


async def test_a_channels_secrets_come_out_nowhere(log_in: Client) -> None:
    client = await log_in("admin")
    given = {"name": "chat", "url": URL, "secret": "SEC-hush-hush", "is_on": "on"}
    answer = await client.post("/alerts/channels/new/dingtalk", given)
    assert answer.status_code == 302
    row = await AlertChannel.objects.aget()
    told = [await text_of(client, address) for address in ("/alerts", f"/alerts/channels/{row.pk}", "/audit")]
    config = await api_for(await User.objects.aget(username="admin"), "config")
    told.append(json.dumps(await config.call("get", "/alerts/channels")))
    assert "hooks.example" in told[0] and "hooks.example" in told[3]
    for text in told:
        assert "very-secret-part" not in text and "SEC-hush-hush" not in text
    await client.post(f"/alerts/channels/{row.pk}", {"name": "chat 2", "url": "", "secret": "", "is_on": "on"})
    kept = await AlertChannel.objects.aget()
    assert kept.name == "chat 2" and kept.known_settings() == {"url": URL, "secret": "SEC-hush-hush", "language": "en"}


MAIL = {
    "host": "mail.example", "port": 465, "security": "tls", "username": "gantry", "password": "hush-hush",
    "sender": "gantry@example.org", "recipients": "ops@example.org",
}  # fmt: skip
HOOK = {"url": URL, "secret": "s" * 32}


@pytest.mark.parametrize(
    ("kind", "before", "change", "asked"),
    [
        ("mail", MAIL, {"host": "evil.example"}, "password"),
        ("mail", MAIL, {"port": 2525}, "password"),
        ("webhook", HOOK, {"url": "https://evil.example/"}, "secret"),
        ("webhook", HOOK, {"url": URL.replace("https", "http")}, "secret"),
        ("webhook", HOOK, {"url": URL.replace(".example", ".example:8443")}, "secret"),
        ("dingtalk", HOOK, {"url": "https://evil.example/"}, "secret"),
        (
            "pagerduty",
            {"endpoint": "https://events.pagerduty.com/v2/enqueue", "routing_key": "r" * 32},
            {"endpoint": "https://evil.example/"},
            "routing_key",
        ),
        (
            "opsgenie",
            {"endpoint": "https://api.opsgenie.com", "api_key": "key-of-opsgenie"},
            {"endpoint": "https://evil.example"},
            "api_key",
        ),
    ],
)
async def test_s62_another_host_gets_no_secret_that_is_kept(
    log_in: Client, kind: str, before: dict[str, Any], change: dict[str, Any], asked: str
) -> None:
    client = await log_in("admin")
    config = await api_for(await User.objects.aget(username="admin"), "config")
    body = {"name": "out", "kind": kind, "settings": before}
    status, made = await config.call("post", "/alerts/channels", body)
    assert status == 201
    after = before | change
    without = {key: value for key, value in after.items() if key != asked}
    status, refused = await config.call("put", f"/alerts/channels/{made['id']}", body | {"settings": without})
    assert status == 422 and "another server" in json.dumps(refused["fields"][asked])
    page = await client.post(f"/alerts/channels/{made['id']}", {"name": "out", "is_on": "on"} | without | {asked: ""})
    assert page.status_code == 422 and "another server" in page.content.decode()
    kept = (await AlertChannel.objects.aget()).known_settings()
    assert {key: kept[key] for key in before} == before
    status, _ = await config.call("put", f"/alerts/channels/{made['id']}", body | {"settings": after})
    assert status == 200
    same = {key: value for key, value in after.items() if key != asked}  # the same place: it stays
    if kind == "mail":
        same["recipients"] = "others@example.org"
    assert (await config.call("put", f"/alerts/channels/{made['id']}", body | {"settings": same}))[0] == 200
    assert (await AlertChannel.objects.aget()).known_settings()[asked] == before[asked]


async def test_s62_a_mail_server_without_an_account_keeps_no_password_of_another(log_in: Client) -> None:
    await log_in("admin")
    config = await api_for(await User.objects.aget(username="admin"), "config")
    body: dict[str, Any] = {"name": "out", "kind": "mail", "settings": MAIL}
    _, made = await config.call("post", "/alerts/channels", body)
    after = MAIL | {"host": "relay.example", "username": "", "password": ""}
    assert (await config.call("put", f"/alerts/channels/{made['id']}", body | {"settings": after}))[0] == 200
    assert not (await AlertChannel.objects.aget()).known_settings()["password"]


async def test_a_webhooks_secret_is_made_and_shown_once(log_in: Client) -> None:
    client = await log_in("admin")
    answer = await client.post("/alerts/channels/new/webhook", {"name": "hook", "url": URL, "is_on": "on"})
    secret = (await AlertChannel.objects.aget()).known_settings()["secret"]
    assert len(secret) >= 32 and secret in await text_of(client, answer.headers["Location"])
    assert secret not in await text_of(client, answer.headers["Location"])


async def test_a_test_shows_request_and_answer_and_stands_in_the_log(log_in: Client) -> None:
    client = await log_in("admin")
    with http_receiver((200, '{"errcode":310000,"errmsg":"sign not match"}')) as receiver:
        await client.post("/alerts/channels/new/wecom", {"name": "chat", "url": receiver.url, "is_on": "on"})
        row = await AlertChannel.objects.aget()
        shown = (await client.post(f"/alerts/channels/{row.pk}/test")).content.decode()
    assert "sign not match" in shown and "A test of GantryMQ" in shown and len(receiver.requests) == 1
    assert "secret-part-of-it" not in shown and "secret-key-of-it" not in shown
    log = await text_of(client, "/alerts/deliveries")
    assert "sign not match" in log and "failed" in log
    assert (await AlertDelivery.objects.aget()).state == "failed"


async def test_a_channel_is_deleted_after_a_look_at_what_is_lost(log_in: Client) -> None:
    client = await log_in("admin")
    await client.post("/alerts/channels/new/slack", {"name": "chat", "url": URL, "is_on": "on"})
    row = await AlertChannel.objects.aget()
    assert "No rule uses it" in await text_of(client, f"/alerts/channels/{row.pk}/delete")
    await client.post(f"/alerts/channels/{row.pk}/delete")
    assert await AlertChannel.objects.acount() == 0


async def test_a_mute_has_an_end_and_a_reason(log_in: Client) -> None:
    client = await log_in("operator")
    for bad in ({"until": "100 d"}, {"until": "2020-01-01 00:00"}, {"until": ""}, {"reason": ""}, {"until": "soon"}):
        answer = await client.post("/alerts/mutes/new", {"until": "2 h", "reason": "a deployment"} | bad)
        assert answer.status_code == 422, bad
    await client.post("/alerts/mutes/new", {"until": "2 h", "reason": "a deployment", "pattern": "orders-*"})
    row = await AlertMute.objects.aget()
    assert timedelta(hours=1) < row.until - timezone.now() <= timedelta(hours=2) and row.who == "operator"
    assert "a deployment" in await text_of(client, "/alerts")
    await client.post(f"/alerts/mutes/{row.pk}/end")
    assert "a deployment" not in await text_of(client, "/alerts")


async def test_what_rings_is_shown_escaped_with_its_mute(log_in: Client) -> None:
    await sync_to_async(ensure_presets)()
    rule = await AlertRule.objects.aget(kind="group-behind")
    await AlertRow.objects.acreate(
        rule=rule, subject="<i>g", level=1, title="Group is behind: <i>g", text="7 min", begun_at=timezone.now()
    )
    page = await text_of(await log_in("reader"), "/alerts")
    assert "&lt;i&gt;g" in page and "<i>g" not in page and "Mute it" not in page


async def test_all_but_the_first_alert_are_a_line_each_that_opens(log_in: Client) -> None:
    await sync_to_async(ensure_presets)()
    rule = await AlertRule.objects.aget(kind="group-behind")
    for number in range(3):
        title, at = f"Group is behind: g{number}", timezone.now()
        await AlertRow.objects.acreate(rule=rule, subject=f"g{number}", level=1, title=title, text="7 min", begun_at=at)
    articles = re.findall("<article.*?</article>", await text_of(await log_in("operator"), "/alerts"), re.DOTALL)
    assert ["<details><summary>7 min</summary>" in article for article in articles] == [False, True, True]
    for article in articles:
        folded = re.sub("<details>.*</details>", "", article, flags=re.DOTALL)
        assert article.count("7 min") == 1 and 'value="acknowledge"' in folded


async def test_a_rule_that_is_named_by_its_condition_does_not_say_it_twice(log_in: Client) -> None:
    await sync_to_async(ensure_presets)()
    await AlertRule.objects.filter(kind="dead-letters").aupdate(name="Mails that bounced", pattern="mailer")
    page = await text_of(await log_in("reader"), "/alerts")
    (mine,) = re.findall(r"<td><b>Mails that bounced</b>.*?</td>", page, re.DOTALL)
    (preset,) = re.findall(r"<td><b>A group has no members</b>.*?</td>", page, re.DOTALL)
    assert '<small class="muted">Dead letters: <code>mailer</code></small>' in mine and "<small" not in preset


async def test_it_says_how_often_a_rule_would_have_rung(log_in: Client) -> None:
    hour = int(time.time()) // HOUR * HOUR - 3 * HOUR
    lags = [0.0] * 10 + [900.0] * 5 + [0.0] * 10 + [900.0] * 5 + [float("nan")] * 10 + [900.0] + [0.0] * 19
    await HistoryBlock.objects.acreate(
        series="group-lag:orders-a", step_s=MINUTE, start=hour, values=array("f", lags).tobytes()
    )
    client = await log_in("reader")
    writer = await api_for(await User.objects.aget(username="operator"))
    status, made = await writer.call("post", "/alerts/rules", RULE)
    assert status == 201 and made["clear_s"] == 60
    status, found = await writer.call("get", f"/alerts/rules/{made['id']}/preview")
    assert (status, found["times"], found["hours"]) == (200, 2, 1)
    page = await text_of(client, f"/alerts/rules/{made['id']}/would-have")
    assert "2 times" in page and "from 50\u202fmin of data" in page, "ten of the hour's minutes are unknown"


async def test_rest_does_what_the_pages_do(users: dict[str, User]) -> None:
    writer, config = await api_for(users["operator"]), await api_for(users["admin"], "config")
    _, made = await writer.call("post", "/alerts/rules", RULE)
    status, changed = await writer.call("put", f"/alerts/rules/{made['id']}", RULE | {"threshold": 700})
    assert (status, changed["threshold"], changed["pattern"]) == (200, 700, "orders-*")
    status, refused = await writer.call("put", f"/alerts/rules/{made['id']}", RULE | {"clear": 9000})
    assert status == 422 and "clear" in refused["fields"]
    assert (await writer.call("post", "/alerts/rules", RULE | {"channel_ids": [4711]}))[0] == 422
    with http_receiver() as receiver:
        body = {"name": "hook", "kind": "webhook", "settings": {"url": receiver.url}}
        assert (await config.call("post", "/alerts/channels", body))[0] == 422
        body["settings"] = {"url": receiver.url, "secret": "s" * 32}
        status, channel = await config.call("post", "/alerts/channels", body)
        assert status == 201 and channel["settings"] == {
            "host": f"127.0.0.1:{receiver.port}",
            "signed": True,
            "language": "en",
        }
        status, sent = await config.call("post", f"/alerts/channels/{channel['id']}/test")
        assert (status, sent["state"], len(receiver.requests)) == (200, "sent", 1)
    assert (await config.call("put", f"/alerts/channels/{channel['id']}", body | {"kind": "slack"}))[0] == 422
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    status, silence = await writer.call(
        "post", "/alerts/mutes", {"ends_at": until, "reason": "r", "rule_id": made["id"]}
    )
    assert status == 201 and (await writer.call("get", "/alerts/mutes"))[1]["total"] == 1
    assert (await writer.call("delete", f"/alerts/mutes/{silence['id']}"))[0] == 204
    assert (await writer.call("get", "/alerts/mutes"))[1]["items"] == []
    assert (await writer.call("get", "/alerts/deliveries"))[1]["total"] == 1
    assert (await config.call("delete", f"/alerts/channels/{channel['id']}"))[0] == 204
    assert (await writer.call("delete", f"/alerts/rules/{made['id']}"))[0] == 204
    assert (await writer.call("get", "/alerts/rules"))[1]["items"] == []
    assert (await writer.call("delete", f"/alerts/rules/{made['id']}"))[0] == 404
    assert (await writer.call("get", "/alerts"))[1] == {"items": [], "total": 0, "next": None, "problems": []}
