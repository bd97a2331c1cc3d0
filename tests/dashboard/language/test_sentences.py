"""A text that is kept or shared is said in the language of who reads it, not of who noted it."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import sync_to_async
from django.template import Context, Template
from django.utils import timezone, translation

from dashboard.alerts import alert_rows
from dashboard.alerts.alert import Rule
from dashboard.alerts.check_alerts import CheckAlerts
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.cluster import units
from dashboard.cluster.errors import explain
from dashboard.language.sentences import again, code_of, gettext, joined, said
from dashboard.live.frames import overview_frame
from dashboard.models.alerts import AlertRow
from dashboard.models.management import User
from dashboard.status.board import BrokerFacts, BrokerState, Point, Snapshot
from dashboard.status.check import Level
from dashboard.status.verdict import judge
from gantrymq.errors import RequestTimeout, ResponseError
from gantrymq.remoting.codes import ResponseCode
from tests.dashboard.conftest import Client, api_for

NOW = 1_800_000_000.0


def silent_broker() -> Snapshot:
    """As the sampler notes it: in English, for all."""
    why = explain(RequestTimeout("127.0.0.1:10911", 28, 0.8))
    facts = BrokerFacts("broker-a", "127.0.0.1:10911", NOW - 65)
    broker = BrokerState("broker-a", "127.0.0.1:10911", facts, why, NOW - 64)
    return Snapshot(NOW, "127.0.0.1:9876", None, (broker,), (), None)


def test_a_sentence_is_said_again_from_what_is_kept_of_it() -> None:
    text = gettext("silent for %(time)s") % {"time": units.duration(3 * 60)}
    assert text == "silent for 3\u202fmin"
    kept = json.loads(json.dumps(code_of(text)))
    with translation.override("zh-hans"):
        assert said(kept) == "已有 3\u202f分钟无应答"
        assert again(text) == said(kept)
    assert said(kept) == text


def test_what_stands_side_by_side_has_the_commas_of_the_language() -> None:
    with translation.override("zh-hans"):
        assert joined(["a", "", "b", "c"]) == "a、b、c"
        assert joined(["broker-a", units.duration(5)], ": ") == "broker-a：5\u202f秒"
    assert joined(["a", "b"], "; ") == "a; b"
    assert joined([]) == ""


def test_each_sentence_is_said_once_however_deep_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    text, asked, real = "here", list[str](), translation.gettext
    for _ in range(12):
        text = gettext("not reachable (%(reason)s)") % {"reason": text}

    def counted(message: str) -> str:
        asked.append(message)
        return real(message)

    monkeypatch.setattr(translation, "gettext", counted)
    assert again(text) == "not reachable (" * 12 + "here" + ")" * 12
    assert len(asked) == 12


@pytest.mark.parametrize(("language", "comma"), [("en", ", "), ("zh-hans", "、")])
def test_a_long_list_is_said_whole(language: str, comma: str) -> None:
    parts = [gettext("silent for %(time)s") % {"time": units.duration(60 * minutes)} for minutes in range(1, 201)]
    kept = json.loads(json.dumps(code_of(joined(parts))))
    with translation.override(language):
        whole = comma.join(again(part) for part in parts)
        assert said(kept) == whole
        assert again(gettext("not on disk: %(tables)s") % {"tables": joined(parts)}).endswith(whole)


@pytest.mark.parametrize(
    "kept",
    [{"one": "%(name)s is gone"}, {"one": "%(a)s", "with": {}}, {"one": "%(a)d", "with": {"a": "x"}}, {}, 3, "plain"],
)
def test_a_row_of_another_version_breaks_no_page(kept: object) -> None:
    assert isinstance(said(kept), str)  # type: ignore[arg-type]


def test_a_template_shows_a_kept_text_in_its_own_language_and_escaped() -> None:
    why = gettext("not reachable (%(reason)s)") % {"reason": "<b>"}
    with translation.override("zh-hans"):
        shown = Template("{{ why }}").render(Context({"why": why}))
    assert "&lt;b&gt;" in shown
    assert not shown.startswith("not reachable")


def test_why_a_broker_is_silent_comes_in_the_language_of_each_tab() -> None:
    snapshot = silent_broker()
    with translation.override("zh-hans"):
        frame = overview_frame(snapshot, Point(NOW, None, None))
    assert "无应答" in frame["sentence"]
    told = json.dumps(frame, ensure_ascii=False)
    assert "0.8 秒" in told
    assert "no answer within" not in told
    assert "no answer within 0.8 s" in json.dumps(overview_frame(snapshot, Point(NOW, None, None)))


def test_a_brokers_remark_has_its_meaning_before_it_in_chinese_only() -> None:
    refused = ResponseError(ResponseCode.NO_PERMISSION, "the topic is read only")
    assert explain(refused) == "the topic is read only"
    is_open = ResponseError(ResponseCode.SYSTEM_ERROR, "broker broker-a has no access control: set aclEnable=true")
    assert explain(is_open) == is_open.remark
    with translation.override("zh-hans"):
        assert explain(refused) == "没有权限（the topic is read only）"
        assert explain(is_open).startswith("Broker 未启用访问控制（broker broker-a has no access")
        assert explain(ResponseError(4711, "what?")) == "what?"


async def test_an_alert_of_a_check_is_kept_in_english_and_read_in_chinese(log_in: Client) -> None:
    book, now = CheckAlerts(), timezone.now().timestamp()
    for second in (0.0, 5.0):
        book.note(judge(silent_broker()).problems, now + second)
    await sync_to_async(alert_rows.write_checks)(book, now + 5.0)
    row = await AlertRow.objects.aget()
    assert row.title == "broker-a does not answer"
    client = await log_in("reader")
    page = (await client.get("/alerts", headers={"Accept-Language": "zh-CN"})).content.decode()
    assert "broker-a 无应答" in page
    assert "does not answer" not in page
    api = await api_for(await User.objects.aget(username="reader"))
    _, told = await api.call("get", "/alerts")
    assert told["items"][0]["title"] == row.title


def test_an_alert_knows_its_text_in_both_languages() -> None:
    book, rule = RuleAlerts(), Rule(1, "A group is behind", "group-lag", "", 10, 0, 0, 0, int(Level.WARN))
    book.note([rule], {"group-lag": {"billing": 25.0}}, NOW)
    [alert] = book.open.values()
    assert alert.text == "25 messages; the alert opens at or above 10 messages"
    with translation.override("zh-hans"):
        assert again(alert.title) == "消费者组落后：billing"
        assert again(alert.text).startswith("25 条消息；")
