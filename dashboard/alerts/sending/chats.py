"""What webhooks and chats take, by their documented bodies and signatures. Pure.

Slack: incoming webhooks, {"text"}, answered with 200 and "ok". DingTalk: timestamp (ms) and sign in the address, the
HMAC-SHA256 of "TIMESTAMP\\nSECRET" under the secret. Feishu: timestamp (s) and sign in the body, the HMAC-SHA256 of
nothing under "TIMESTAMP\\nSECRET". WeCom: no signature, the key in the address is the secret. DingTalk and WeCom answer
200 with errcode, Feishu with code; 0 is good. Teams: the webhook of a workflow takes a message with an Adaptive Card,
answered with 202; RichTextBlock has plain text, where a TextBlock would read Markdown.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from dashboard.alerts.sending.notices import text_of

WECOM_BYTES_MAX = 2048  # of a text's content
CHARS_MAX = 3500  # of a text elsewhere; a message of Teams has 28 KB at most
Built = tuple[str, bytes, dict[str, str]]  # address, body, headers


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Of our own webhook: what the receiver computes anew from the header's timestamp and the body."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def webhook(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    body, timestamp = notice.encode(), str(int(now))
    headers = {"X-Gantry-Timestamp": timestamp, "X-Gantry-Delivery": delivery}
    headers["X-Gantry-Signature"] = signature(settings["secret"], timestamp, body)
    return settings["url"], body, headers


def slack(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    text = _cut(text_of(notice)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return settings["url"], _json({"text": text}), {}


def dingtalk(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    url, secret = settings["url"], settings.get("secret")
    if secret:
        timestamp = str(int(now * 1000))
        sign = _hmac(secret, f"{timestamp}\n{secret}")
        url = _with_query(url, {"timestamp": timestamp, "sign": sign})
    return url, _json({"msgtype": "text", "text": {"content": _cut(text_of(notice))}}), {}


def feishu(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    body: dict[str, Any] = {"msg_type": "text", "content": {"text": _cut(text_of(notice))}}
    if secret := settings.get("secret"):
        timestamp = str(int(now))
        body = {"timestamp": timestamp, "sign": _hmac(f"{timestamp}\n{secret}", "")} | body
    return settings["url"], _json(body), {}


def wecom(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    text = text_of(notice).encode()[:WECOM_BYTES_MAX].decode("utf-8", "ignore")
    return settings["url"], _json({"msgtype": "text", "text": {"content": text}}), {}


def teams(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    title, _, rest = _cut(text_of(notice)).partition("\n")
    blocks = [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": title, "weight": "Bolder"}]}]
    blocks += [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line}]} for line in rest.splitlines() if line
    ]  # fmt: skip
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
        "body": blocks,
        "actions": [
            {"type": "Action.OpenUrl", "title": "GantryMQ", "url": one["link"]}
            for one in json.loads(notice).get("alarms", [])[:1]
        ],
    }  # fmt: skip
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return settings["url"], _json({"type": "message", "attachments": [attachment]}), {}


# ---- helpers


def _hmac(key: str, text: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()).decode()


def _with_query(url: str, more: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, urlencode(more)) if part)
    return urlunsplit(parts._replace(query=query))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _cut(text: str) -> str:
    return text if len(text) <= CHARS_MAX else text[: CHARS_MAX - 1] + "…"
