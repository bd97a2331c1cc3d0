"""The documented bodies and signatures, computed here by the receivers' own rules."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard.alerts.sending.chats import WECOM_BYTES_MAX
from dashboard.alerts.sending.notices import FIRED, Told, notice_of
from dashboard.alerts.sending.outgoing import outcome_of, request_for, without_secrets

NOW = 1_700_000_000.25
TOLD = Told(
    "g", "Group is behind: g <b>", "7 min & more", "attention", NOW - 60, None, "http://gantry/group/g", "1700000000-7"
)
NOTICE = notice_of(FIRED, "behind", [TOLD]).to_json()
URL = "https://hooks.example/T0001/long-secret-part?access_token=abcdef123456"


def digest(key: str, text: str) -> bytes:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()


def test_a_webhook_is_signed_over_timestamp_and_body() -> None:
    sent = request_for("webhook", {"url": URL, "secret": "s" * 20}, NOTICE, NOW, "17")
    stamp = sent.headers["X-Gantry-Timestamp"]
    assert sent.headers["X-Gantry-Signature"] == "sha256=" + digest("s" * 20, f"{stamp}.{sent.body.decode()}").hex()
    body = json.loads(sent.body)
    assert (stamp, sent.headers["X-Gantry-Delivery"], body["what"]) == ("1700000000", "17", "fired")
    assert body["alarms"][0]["begun_at"] == "2023-11-14T22:12:20Z" and body["alarms"][0]["ended_at"] is None


def test_slack_gets_text_with_its_three_characters_escaped() -> None:
    sent = request_for("slack", {"url": URL}, NOTICE, NOW, "17")
    text = json.loads(sent.body)["text"]
    assert "&lt;b&gt;" in text and "7 min &amp; more" in text and "<" not in text


def test_dingtalk_is_signed_in_the_address() -> None:
    sent = request_for("dingtalk", {"url": URL, "secret": "SEC1"}, NOTICE, NOW, "17")
    query = parse_qs(urlsplit(sent.url).query)
    assert query["access_token"] == ["abcdef123456"] and query["timestamp"] == ["1700000000250"]
    assert base64.b64decode(query["sign"][0]) == digest("SEC1", "1700000000250\nSEC1")
    body = json.loads(sent.body)
    assert body["msgtype"] == "text" and "7 min & more" in body["text"]["content"]


def test_feishu_is_signed_in_the_body() -> None:
    body = json.loads(request_for("feishu", {"url": URL, "secret": "SEC1"}, NOTICE, NOW, "17").body)
    assert base64.b64decode(body["sign"]) == digest("1700000000\nSEC1", "")
    assert (body["timestamp"], body["msg_type"]) == ("1700000000", "text")
    assert "7 min & more" in body["content"]["text"]


def test_wecom_gets_no_more_than_it_takes() -> None:
    many = notice_of(
        FIRED, "behind", [Told("组" * 90, "组" * 300, "t" * 300, "problem", NOW, None, "l", "k")] * 8
    ).to_json()
    content = json.loads(request_for("wecom", {"url": URL}, many, NOW, "17").body)["text"]["content"]
    assert 0 < len(content.encode()) <= WECOM_BYTES_MAX


def test_one_notice_names_ten_and_counts_the_others() -> None:
    told = json.loads(notice_of(FIRED, "behind", [TOLD] * 40).to_json())
    assert (len(told["alarms"]), told["all"]) == (10, 40) and told["title"].endswith("and 39 more")


@pytest.mark.parametrize(
    ("kind", "status", "answer", "is_done", "may_retry"),
    [
        ("slack", 200, "ok", True, False), ("slack", 404, "no_team", False, False), ("slack", 429, "", False, True),
        ("webhook", 204, "", True, False), ("webhook", 302, "", False, False), ("webhook", 503, "busy", False, True),
        ("dingtalk", 200, '{"errcode":0,"errmsg":"ok"}', True, True),
        ("dingtalk", 200, '{"errcode":310000,"errmsg":"sign not match"}', False, True),
        ("wecom", 200, '{"errcode":93000}', False, True), ("feishu", 200, '{"code":0}', True, True),
        ("feishu", 200, '{"StatusCode":0}', True, True),
        ("feishu", 200, '{"code":19021,"msg":"sign match fail"}', False, True), ("feishu", 200, "<html>", False, False),
        ("wecom", 200, "[]", False, False),
    ],
)  # fmt: skip
def test_what_an_answer_means(kind: str, status: int, answer: str, is_done: bool, may_retry: bool) -> None:
    outcome = outcome_of(kind, status, answer)
    assert (outcome.is_done, outcome.is_done or outcome.may_retry) == (is_done, is_done or may_retry)


def test_secrets_are_taken_out_of_what_is_shown() -> None:
    known = {"url": URL, "secret": "hush-hush-hush"}
    shown = without_secrets(f"POST {URL}: long-secret-part abcdef123456 hush-hush-hush", known)
    for secret in ("long-secret-part", "abcdef123456", "hush"):
        assert secret not in shown
