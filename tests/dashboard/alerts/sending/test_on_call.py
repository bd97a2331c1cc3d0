"""PagerDuty, Opsgenie and Teams: what arrives, by the makers' documents; one incident an alert, in its order.

PagerDuty: the OpenAPI document of Events API v2. Opsgenie: the table of fields of the Alert API. Teams: the message
with an Adaptive Card that a workflow takes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import re
import time
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.alerts import alert_rows, editing, handling
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.alerts.rules import for_book
from dashboard.alerts.sending.delivery import Sender
from dashboard.alerts.sending.notices import FIRED, Told, notice_of, notice_of_test
from dashboard.alerts.sending.outgoing import request_for
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertRow, AlertRule
from dashboard.models.management import User
from tests.dashboard.alerts.receivers import Receiver, http_receiver
from tests.dashboard.conftest import Client, api_for
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("may_send_to_loopback", "transactional_db")

ROUTING_KEY, API_KEY = "0123456789abcdef0123456789abcdef", "eb243592-faa2-4ba2-a551-1afdf565c889"
TAKEN = (202, '{"status":"success","message":"Event processed","dedup_key":"k"}')
SETTINGS = {"pagerduty": {"routing_key": ROUTING_KEY}, "opsgenie": {"api_key": API_KEY}}
LATE = {"group-lag": {"orders_app": 900.0, "mails": 700.0}}
FINE = {"group-lag": {"orders_app": 0.0, "mails": 0.0}}


def address(receiver: Receiver, kind: str) -> str:
    begin = f"http://127.0.0.1:{receiver.port}"
    return f"{begin}/v2/enqueue" if kind == "pagerduty" else begin


def channel(kind: str, receiver: Receiver) -> AlertChannel:
    given = {"url": receiver.url} if kind == "teams" else SETTINGS[kind] | {"endpoint": address(receiver, kind)}
    return editing.save_channel(f"a {kind}", kind, given, True)


def open_two(*, acknowledge: bool = False, end: bool = True) -> None:
    """Two alerts of one rule open together, perhaps somebody handles the first, and both are over."""
    row = AlertRule.objects.create(
        name="orders are late", kind="group-lag", threshold=500, clear=500, for_s=0, clear_s=0, level=2
    )
    rule, book, now = for_book(row), RuleAlerts(), time.time()
    book.note([rule], LATE, now)
    alert_rows.write(book)
    if acknowledge:
        handling.acknowledge(AlertRow.objects.get(subject="orders_app"), "ada")
    if end:
        book.note([rule], FINE, now + 60)
        book.note([rule], FINE, now + 61)
        alert_rows.write(book)


async def all_sent(sender: Sender) -> None:
    async with asyncio.TaskGroup() as group:

        async def is_done() -> bool:
            await sender.send_due(group)
            return not await AlertDelivery.objects.filter(state="waiting").aexists()

        await until(is_done)


# ---- PagerDuty


def check_event(body: dict[str, Any]) -> None:
    """By the OpenAPI document: what is required, and each enumeration."""
    assert set(body) <= {"payload", "routing_key", "event_action", "dedup_key", "client", "client_url", "links"}
    assert len(body["routing_key"]) == 32 and body["event_action"] in ("trigger", "acknowledge", "resolve")
    assert 0 < len(body["dedup_key"]) <= 255
    if body["event_action"] == "trigger":
        payload = body["payload"]
        assert payload["summary"] and payload["source"] and len(payload["summary"]) <= 1024
        assert payload["severity"] in ("critical", "error", "warning", "info")
        assert all(link["href"].startswith("http") for link in body.get("links", ()))
    else:
        assert "payload" not in body


async def test_pagerduty_gets_an_incident_an_alert_that_its_key_acknowledges_and_resolves(sender: Sender) -> None:
    with http_receiver(TAKEN) as receiver:
        await sync_to_async(channel)("pagerduty", receiver)
        await sync_to_async(open_two)(acknowledge=True)
        await all_sent(sender)
    bodies = [json.loads(one.body) for one in receiver.requests]
    for body in bodies:
        check_event(body)
    of_orders = [one for one in bodies if one["dedup_key"] == bodies[0]["dedup_key"]]
    others = [one for one in bodies if one not in of_orders]
    assert [one["event_action"] for one in of_orders] == ["trigger", "acknowledge", "resolve"]
    assert [one["event_action"] for one in others] == ["trigger", "resolve"]
    assert len({one["dedup_key"] for one in others}) == 1
    assert of_orders[0]["payload"]["summary"] == "orders are late: orders_app"
    assert of_orders[0]["payload"]["severity"] == "critical" and of_orders[0]["payload"]["component"] == "orders_app"
    assert of_orders[0]["payload"]["timestamp"].endswith("Z")
    assert {one.path for one in receiver.requests} == {"/v2/enqueue"}


# ---- Opsgenie


async def test_opsgenie_gets_the_same_by_its_alias(sender: Sender) -> None:
    with http_receiver((202, '{"result":"Request will be processed","took":0.1,"requestId":"4"}')) as receiver:
        await sync_to_async(channel)("opsgenie", receiver)
        await sync_to_async(open_two)(acknowledge=True)
        await all_sent(sender)
    assert all(one.headers["Authorization"] == f"GenieKey {API_KEY}" for one in receiver.requests)
    calls = [(urlsplit(one.path), json.loads(one.body)) for one in receiver.requests]
    made = [body for address, body in calls if address.path == "/v2/alerts"]
    for body in made:
        assert 0 < len(body["message"]) <= 130 and 0 < len(body["alias"]) <= 512
        assert len(body["description"]) <= 15_000 and body["priority"] == "P1" and len(body["entity"]) <= 512
        assert all(isinstance(value, str) for value in body["details"].values())
    assert {body["entity"] for body in made} == {"orders_app", "mails"}
    alias = {body["entity"]: body["alias"] for body in made}
    acted = [(address, body) for address, body in calls if address.path != "/v2/alerts"]
    assert all(parse_qs(address.query) == {"identifierType": ["alias"]} for address, _ in acted)
    assert acted[0][0].path == f"/v2/alerts/{alias['orders_app']}/acknowledge" and acted[0][1]["user"] == "ada"
    assert {address.path for address, _ in acted[1:]} == {f"/v2/alerts/{one}/close" for one in alias.values()}
    [note] = [body["note"] for address, body in acted[1:] if alias["orders_app"] in address.path]
    assert "acknowledged by ada" in note


# ---- Teams


async def test_teams_gets_one_card_for_both_with_texts_as_they_are(sender: Sender) -> None:
    with http_receiver((202, "")) as receiver:
        await sync_to_async(channel)("teams", receiver)
        await sync_to_async(open_two)(end=False)
        await all_sent(sender)
    [got] = receiver.requests
    body = json.loads(got.body)
    [attachment] = body["attachments"]
    card = attachment["content"]
    assert body["type"] == "message" and attachment["contentUrl"] is None
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert (card["type"], card["version"], card["$schema"]) == (
        "AdaptiveCard", "1.4", "http://adaptivecards.io/schemas/adaptive-card.json")  # fmt: skip
    assert {one["type"] for one in card["body"]} == {"RichTextBlock"}, "a TextBlock would read _ and [](…) as Markdown"
    texts = [run["text"] for one in card["body"] for run in one["inlines"]]
    assert texts[0] == "orders are late: orders_app, and 1 more" and any("mails" in text for text in texts)
    assert card["actions"][0]["type"] == "Action.OpenUrl" and card["actions"][0]["url"].startswith("http")


def test_a_card_is_never_larger_than_teams_takes() -> None:
    many = [Told("组" * 90, "组" * 300, "🚚" * 300, "problem", 1.7e9, None, "http://g/", f"k{n}") for n in range(30)]
    sent = request_for("teams", {"url": "https://t.example/x"}, notice_of(FIRED, "r", many).to_json(), 1.7e9, "17")
    assert len(sent.body) < 28_000


# ---- what does not work


@pytest.mark.parametrize("kind", ["pagerduty", "opsgenie"])
async def test_an_end_waits_for_a_begin_that_is_sent_again(kind: str, sender: Sender) -> None:
    with http_receiver((429, "slow down"), TAKEN) as receiver:
        await sync_to_async(channel)(kind, receiver)
        await sync_to_async(open_two)()
        begin, other, *_ends = [one async for one in AlertDelivery.objects.select_related("alert").order_by("pk")]
        async with asyncio.TaskGroup() as group:

            async def the_other_is_over() -> bool:
                await sender.send_due(group)
                return await AlertDelivery.objects.filter(alert=other.alert, state="sent").acount() == 2

            await until(the_other_is_over)
        states = [one.state async for one in AlertDelivery.objects.filter(alert=begin.alert).order_by("pk")]
        assert states == ["waiting", "waiting"], "the end is due, and waits for its begin"
        await AlertDelivery.objects.filter(pk=begin.pk).aupdate(due_at=timezone.now() - timedelta(seconds=1))
        await all_sent(sender)
    assert len(receiver.requests) == 5
    assert re.search("resolve|close", receiver.requests[-1].path + receiver.requests[-1].body.decode())


@pytest.mark.parametrize("kind", ["pagerduty", "opsgenie"])
async def test_what_is_refused_is_not_sent_again_and_no_key_is_in_answer_or_log(
    kind: str, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    with http_receiver((400, f"invalid: {ROUTING_KEY} {API_KEY}")) as receiver:
        to = await sync_to_async(channel)(kind, receiver)
        with caplog.at_level(logging.DEBUG):
            await sync_to_async(open_two)(end=False)
            await all_sent(sender)
    rows = [one async for one in AlertDelivery.objects.all()]
    assert {(one.state, one.attempts) for one in rows} == {("failed", 1)}
    secret = next(iter(SETTINGS[kind].values()))
    told = "".join(one.answer for one in rows) + "".join(str(record.__dict__) for record in caplog.records)
    assert rows[0].answer.startswith("400 invalid") and secret not in told
    assert secret not in str(editing.shown_facts(to))


@pytest.mark.parametrize("kind", ["pagerduty", "opsgenie", "teams"])
async def test_s23_private_addresses_get_nothing(kind: str, sender: Sender, settings: Any) -> None:
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, alarm_networks="")
    with http_receiver() as receiver:
        await sync_to_async(channel)(kind, receiver)
        await sync_to_async(open_two)(end=False)
        await all_sent(sender)
    answers = [one.answer async for one in AlertDelivery.objects.all()]
    assert receiver.requests == [] and answers
    assert all("not a public address" in answer for answer in answers)


# ---- form and REST


@pytest.mark.parametrize(
    ("kind", "place", "in_europe"),
    [
        ("pagerduty", "https://events.pagerduty.com/", "https://events.eu.pagerduty.com/"),
        ("opsgenie", "https://api.opsgenie.com", "https://api.eu.opsgenie.com"),
    ],
)
async def test_the_form_knows_the_address_and_shows_no_key(
    log_in: Client, kind: str, place: str, in_europe: str
) -> None:
    client = await log_in("admin")
    form = (await client.get(f"/alerts/channels/new/{kind}")).content.decode()
    assert f'value="{place}' in form and in_europe in form
    [(name, secret)] = SETTINGS[kind].items()
    given = {"name": "on call", "endpoint": place, name: secret, "is_on": "on"}
    assert (await client.post(f"/alerts/channels/new/{kind}", given | {name: "a key"})).status_code == 422
    assert (await client.post(f"/alerts/channels/new/{kind}", given)).status_code == 302
    row = await AlertChannel.objects.aget()
    for page in ("/alerts", f"/alerts/channels/{row.pk}", "/audit"):
        assert secret not in (await client.get(page)).content.decode(), page
    assert urlsplit(place).netloc in (await client.get("/alerts")).content.decode()


async def test_rest_makes_one_with_the_makers_address_and_sends_a_test(users: dict[str, User]) -> None:
    config = await api_for(users["admin"], "config")
    body: dict[str, Any] = {"name": "on call", "kind": "pagerduty", "settings": {"routing_key": "short"}}
    status, refused = await config.call("post", "/alerts/channels", body)
    assert status == 422 and "32 characters" in refused["fields"]["routing_key"][0]
    status, made = await config.call("post", "/alerts/channels", body | {"settings": SETTINGS["pagerduty"]})
    assert status == 201 and made["settings"] == {
        "host": "events.pagerduty.com", "endpoint": "https://events.pagerduty.com/v2/enqueue", "language": "en",
    }  # fmt: skip
    with http_receiver(TAKEN) as receiver:
        here = SETTINGS["pagerduty"] | {"endpoint": address(receiver, "pagerduty")}
        assert (await config.call("put", f"/alerts/channels/{made['id']}", body | {"settings": here}))[0] == 200
        status, sent = await config.call("post", f"/alerts/channels/{made['id']}/test")
    assert (status, sent["state"]) == (200, "sent")
    event = json.loads(receiver.requests[0].body)
    check_event(event)
    assert event["payload"]["severity"] == "info", "a test is no emergency"


@pytest.mark.parametrize("kind", ["pagerduty", "opsgenie"])
def test_two_tests_are_two_incidents(kind: str) -> None:
    known = SETTINGS[kind] | {"endpoint": "https://x.example"}
    notice = notice_of_test("ada", "http://g/").to_json()
    bodies = [json.loads(request_for(kind, known, notice, 1.7e9, number).body) for number in ("17-1", "17-2", "17-1")]
    keys = [one.get("dedup_key") or one["alias"] for one in bodies]
    assert keys[0] != keys[1] and keys[0] == keys[2], "an attempt that is made again is no second one"
