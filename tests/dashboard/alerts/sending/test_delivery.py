"""From a snapshot to what a receiver gets: signed, no redirects, tried again, and no secret in a log."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import hashlib
import hmac
import json
import logging
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.alerts import editing
from dashboard.alerts.sending import delivery as deliveries
from dashboard.alerts.sending.delivery import RETRY_AFTER_S, Sender
from dashboard.alerts.sending.notices import notice_of_test
from dashboard.alerts.watch import AlertWatch
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertMute, AlertRow, AlertRule
from dashboard.status.board import Board, BrokerFacts, BrokerState, Snapshot, WatchedGroup
from tests.dashboard.alerts.receivers import Receiver, http_receiver, mail_receiver
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("may_send_to_loopback", "transactional_db")

NOW = 1_700_000_000.0
FACTS = BrokerFacts("broker-a", "a", NOW, in_rate=1.0, disk_ratio=0.5)
FINE = Snapshot(NOW, "n", None, (BrokerState("broker-a", "a", FACTS),), (), None)
BEHIND = WatchedGroup("orders-mail", 17105, 24 * 60_000, 2, NOW)


async def channel(kind: str, **given: Any) -> AlertChannel:
    return await sync_to_async(editing.save_channel)(f"a {kind}", kind, given, True)


async def sent(sender: Sender, to: AlertChannel, **options: Any) -> AlertDelivery:
    """One attempt at one delivery."""
    now = timezone.now()
    one = await AlertDelivery.objects.acreate(
        channel=to, what="test", title="a test", notice=notice_of_test("ada", "http://g/").to_json(), made_at=now,
        due_at=now,
    )  # fmt: skip
    await sender.attempt(one, to, **options)
    return one


# ---- each kind, by the receiver's own rules


async def test_a_webhook_arrives_signed(sender: Sender) -> None:
    with http_receiver() as receiver:
        one = await sent(sender, await channel("webhook", url=receiver.url, secret="s" * 32))
    [got] = receiver.requests
    signed = hmac.new(b"s" * 32, f"{got.headers['X-Gantry-Timestamp']}.".encode() + got.body, hashlib.sha256)
    assert got.headers["X-Gantry-Signature"] == f"sha256={signed.hexdigest()}"
    assert (one.state, json.loads(got.body)["what"]) == ("sent", "test")
    assert receiver.url.endswith(got.path)


@pytest.mark.parametrize(
    ("kind", "answer"),
    [("slack", "ok"), ("dingtalk", '{"errcode":0}'), ("feishu", '{"code":0}'), ("wecom", '{"errcode":0}')],
)
async def test_chats_take_it(kind: str, answer: str, sender: Sender) -> None:
    signs = {"secret": "SEC1"} if kind in ("dingtalk", "feishu") else {}
    with http_receiver((200, answer)) as receiver:
        one = await sent(sender, await channel(kind, url=receiver.url, **signs))
    [got] = receiver.requests
    body, query = json.loads(got.body), parse_qs(urlsplit(got.path).query)
    text = {"slack": body.get("text"), "feishu": body.get("content", {}).get("text")}.get(kind)
    text = text if isinstance(text, str) else body["text"]["content"]
    assert one.state == "sent" and text.startswith("A test of GantryMQ") and query["key"] == ["secret-key-of-it"]
    if kind == "dingtalk":
        key, message = "SEC1", f"{query['timestamp'][0]}\nSEC1"
        assert base64.b64decode(query["sign"][0]) == hmac.digest(key.encode(), message.encode(), "sha256")
    if kind == "feishu":
        assert base64.b64decode(body["sign"]) == hmac.digest(f"{body['timestamp']}\nSEC1".encode(), b"", "sha256")


async def test_a_mail_is_taken_or_refused(sender: Sender) -> None:
    people = {"sender": "g@example.com", "recipients": "a@example.com, b@example.com"}
    given = {"host": "127.0.0.1", "security": "none"} | people
    with mail_receiver() as receiver:
        to = await channel("mail", port=receiver.port, **given)
        one = await sent(sender, to)
    assert one.state == "sent" and b"Subject: GantryMQ: A test of GantryMQ" in receiver.requests[0].body
    with mail_receiver(refuses="550 not here") as receiver:
        await AlertChannel.objects.filter(pk=to.pk).aupdate(settings=json.dumps(given | {"port": receiver.port}))
        one = await sent(sender, await AlertChannel.objects.aget(pk=to.pk))
    assert one.state == "failed" and "not here" in one.answer


# ---- what does not work


async def test_s23_a_redirect_is_not_followed(sender: Sender) -> None:
    with http_receiver() as elsewhere, http_receiver((307, "")) as receiver:
        receiver.location = elsewhere.url
        one = await sent(sender, await channel("slack", url=receiver.url))
    assert one.state == "failed" and elsewhere.requests == [] and one.answer.startswith("307")


async def test_s23_private_addresses_get_nothing(sender: Sender, settings: Any) -> None:
    """S23: also for a name that has one."""
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, alarm_networks="")
    with http_receiver() as receiver, mail_receiver() as mails:
        by_name = f"http://localhost:{receiver.port}/"
        people = {"security": "none", "sender": "g@example.com", "recipients": "a@example.com"}
        for to in (
            await channel("slack", url=receiver.url),
            await channel("wecom", url=by_name),
            await channel("mail", host="127.0.0.1", port=mails.port, **people),
        ):
            one = await sent(sender, to)
            assert one.state == "failed" and "not a public address" in one.answer
    assert receiver.requests == [] and mails.requests == []


async def test_what_fails_is_tried_again_later_and_not_for_ever(sender: Sender) -> None:
    with http_receiver((503, "busy"), (200, "ok")) as receiver:
        to = await channel("slack", url=receiver.url)
        one = await sent(sender, to)
        assert (one.state, one.attempts) == ("waiting", 1) and one.due_at > timezone.now()
        await sender.attempt(one, to)
        assert (one.state, one.attempts) == ("sent", 2)
    for _ in RETRY_AFTER_S:
        one = await sent(sender, to)  # now it is not there at all
        one.attempts = len(RETRY_AFTER_S)
    await sender.attempt(one, to)
    assert one.state == "failed" and "ConnectionRefusedError" in one.answer


async def test_one_that_hangs_is_ended(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "WHOLE_TIMEOUT_S", 0.2)
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    async with server:
        one = await sent(sender, await channel("slack", url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    assert one.state == "waiting" and "no answer within" in one.answer


async def test_neither_logs_nor_answers_hold_secrets(sender: Sender, caplog: pytest.LogCaptureFixture) -> None:
    with http_receiver((403, "no: /hook/secret-part-of-it, key secret-key-of-it")) as receiver:
        to = await channel("dingtalk", url=receiver.url, secret="hush-hush-hush")
        with caplog.at_level(logging.DEBUG):
            one = await sent(sender, to)
    told = one.answer + "".join(str(record.__dict__) for record in caplog.records)
    for secret in ("secret-part-of-it", "secret-key-of-it", "hush-hush-hush"):
        assert secret not in told
    assert one.answer.startswith("403 no: ")


# ---- from a snapshot to a notice


async def test_a_group_that_falls_behind_is_told_once_and_its_end_too() -> None:
    with http_receiver() as receiver:
        await channel("webhook", url=receiver.url, secret="s" * 32)
        watch, board = await watched()
        await look(watch, board, BEHIND, seconds=12)
        assert await told(receiver, 1) == [("fired", "A group is behind: orders-mail")]
        await look(watch, board, BEHIND, seconds=100)
        await look(watch, board, dataclasses.replace(BEHIND, lag=0, lag_ms=0), seconds=100)
        assert (await told(receiver, 2))[1] == ("resolved", "Resolved: A group is behind: orders-mail")
    [row] = [row async for row in AlertRow.objects.exclude(rule=None)]
    assert row.is_told and row.ended_at is not None and row.subject == "orders-mail"


async def test_a_new_process_goes_on_with_what_rings() -> None:
    with http_receiver() as receiver:
        await channel("webhook", url=receiver.url, secret="s" * 32)
        for _ in range(2):
            watch, board = await watched()
            await look(watch, board, BEHIND, seconds=30)
        assert await told(receiver, 1) == [("fired", "A group is behind: orders-mail")]
    assert await AlertRow.objects.exclude(rule=None).acount() == 1


async def test_a_silenced_alarm_is_told_when_its_silence_ends() -> None:
    with http_receiver() as receiver:
        await channel("webhook", url=receiver.url, secret="s" * 32)
        watch, board = await watched()
        end = timezone.now() + timedelta(hours=1)
        row = await sync_to_async(editing.mute)(None, "orders-*", "a deployment", end, "ada")
        await look(watch, board, BEHIND, seconds=20)
        assert await AlertDelivery.objects.acount() == 0 and await AlertRow.objects.exclude(rule=None).acount() == 1
        await sync_to_async(editing.end_mute)(await AlertMute.objects.aget(pk=row.pk))
        await look(watch, board, BEHIND, seconds=1)
        assert await told(receiver, 1) == [("fired", "A group is behind: orders-mail")]


async def test_a_rule_tells_its_own_channels_and_many_subjects_are_one_notice() -> None:
    with http_receiver() as chosen, http_receiver() as other:
        own = await channel("webhook", url=chosen.url, secret="s" * 32)
        await channel("slack", url=other.url)
        watch, board = await watched()
        await (await AlertRule.objects.aget(kind="group-behind")).channels.aset([own])
        groups = [dataclasses.replace(BEHIND, name=f"g{number}") for number in range(30)]
        await look(watch, board, *groups, seconds=12)
        [(what, title)] = await told(chosen, 1)
        assert what == "fired" and title.endswith("and 29 more") and other.requests == []


async def watched() -> tuple[AlertWatch, Board]:
    board = Board()
    watch = AlertWatch(board)
    board.put(FINE)
    await watch.look()
    return watch, board


async def look(watch: AlertWatch, board: Board, *groups: WatchedGroup, seconds: int) -> None:
    """The sampler sees these groups for so long."""
    assert board.snapshot is not None
    begin = board.snapshot.at
    for second in range(1, seconds + 1):
        at = begin + second
        broker = BrokerState("broker-a", "a", dataclasses.replace(FACTS, at=at))
        board.put(dataclasses.replace(FINE, at=at, brokers=(broker,), groups=groups))
        await watch.look()


async def told(receiver: Receiver, number: int) -> list[tuple[str, str]]:
    """Send what is due, until so many notices have arrived; no more than these must come."""
    sender = Sender()
    try:
        async with asyncio.TaskGroup() as group:

            async def is_done() -> bool:
                await sender.send_due(group)
                waiting = await AlertDelivery.objects.filter(state="waiting").acount()
                return not waiting and len(receiver.requests) >= number

            await until(is_done)
    finally:
        sender.close()
    assert len(receiver.requests) == number
    return [(body["what"], body["title"]) for body in (json.loads(one.body) for one in receiver.requests)]
