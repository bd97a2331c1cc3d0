"""What channels are told is in the language of their receivers."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import sync_to_async
from django.utils import translation

from dashboard.alerts import alert_rows, editing
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.alerts.rules import ensure_presets, rules_in_force
from dashboard.alerts.sending.notices import text_of
from dashboard.models.alerts import AlertChannel, AlertDelivery
from dashboard.reports.letter import letter_of
from tests.dashboard.conftest import Client

pytestmark = pytest.mark.usefixtures("may_send_to_loopback")

NOW = 1_800_000_000.0
URL = "https://hooks.example/services/a-secret-part"


def test_each_channel_is_told_in_its_language(transactional_db: None) -> None:
    for name, language in (("ops", ""), ("hangzhou", "zh-hans")):
        editing.save_channel(name, "slack", {"url": URL, "language": language}, True)
    ensure_presets()
    book, rules = RuleAlerts(), rules_in_force()
    for at in (NOW, NOW + 1):
        book.note(rules, {"dead-letters": {"billing": 25.0}}, at)
    alert_rows.write(book)
    told = {one.channel.name: text_of(one.notice) for one in AlertDelivery.objects.select_related("channel")}
    assert told["ops"].startswith("A group has dead letters: billing\n")
    assert "\nsince 2027-" in told["ops"]
    assert told["hangzhou"].startswith("消费者组有死信：billing\n")
    assert "25 条消息；规则在大于或等于" in told["hangzhou"]
    assert "始于 2027-" in told["hangzhou"]
    book.note(rules, {"dead-letters": {"billing": 0.0}}, NOW + 2)
    book.note(rules, {"dead-letters": {"billing": 0.0}}, NOW + 100)
    alert_rows.write(book)
    over = AlertDelivery.objects.filter(what="resolved", channel__name="hangzhou").get()
    assert over.title == "已恢复：消费者组有死信：billing"
    assert json.loads(over.notice)["rule"] == "消费者组有死信"


async def test_a_channel_made_on_a_chinese_page_speaks_chinese_unless_it_is_said(log_in: Client) -> None:
    client = await log_in("admin")
    page = await client.get("/alerts/channels/new/dingtalk", headers={"Accept-Language": "zh-CN"})
    assert '<option value="zh-hans" selected>' in page.content.decode()
    await client.post("/alerts/channels/new/dingtalk", {"name": "d", "url": URL, "language": "en", "is_on": "on"})
    assert (await AlertChannel.objects.aget(name="d")).language == "en"
    with pytest.raises(editing.NotTaken, match="One of en, zh-hans"):
        await sync_to_async(editing.save_channel)("e", "slack", {"url": URL, "language": "tlh"}, True)


def test_the_weekly_letter_is_whole_in_chinese_and_its_columns_stand_in_line() -> None:
    lag = {"group": "billing", "behind_seconds": 90, "lag": 5, "minutes_over": 0}
    with translation.override("zh-hans"):
        letter = letter_of("w", {"lag": [lag]})
        text, html = letter.text(), letter.html()
    assert '<html lang="zh-CN">' in html
    assert "落后的消费者组\n--------------\n" in text
    assert "1\u202f分钟" in text
    assert not [word for word in ("Groups", "Note", "No message", "Messages", "Unused") if word in text]
