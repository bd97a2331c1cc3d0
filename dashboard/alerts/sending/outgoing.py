"""Requests to webhooks and chats, by their documented bodies and signatures, and what their answers mean. Pure.

Slack: incoming webhooks, {"text"}, answered with 200 and "ok". DingTalk: timestamp (ms) and sign in the address, the
HMAC-SHA256 of "TIMESTAMP\\nSECRET" under the secret. Feishu: timestamp (s) and sign in the body, the HMAC-SHA256 of
nothing under "TIMESTAMP\\nSECRET". WeCom: no signature, the key in the address is the secret. DingTalk and WeCom answer
200 with errcode, Feishu with code; 0 is good.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from dashboard.alerts.sending.notices import text_of
from dashboard.models.alerts import ChannelKind

USER_AGENT = "GantryMQ"
WECOM_BYTES_MAX = 2048  # of a text's content
CHARS_MAX = 3500  # of a text elsewhere
RETRY_STATUS = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A POST."""

    url: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to. may_retry: it may work later."""

    is_done: bool
    may_retry: bool
    answer: str


def request_for(kind: str, settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Outgoing:
    """The POST that tells a notice (Notice.to_json). delivery: the same at each attempt."""
    build = _BUILDERS[kind]
    url, body, headers = build(settings, notice, now, delivery)
    always = {"Content-Type": "application/json; charset=utf-8", "User-Agent": USER_AGENT}
    return Outgoing(url, body, always | headers)


def outcome_of(kind: str, status: int, answer: str) -> Outcome:
    """What an answer means; its begin is for people."""
    shown = f"{status} {answer.strip()}"
    if not 200 <= status < 300:
        may_retry = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in RETRY_STATUS
        return Outcome(False, may_retry, shown)
    if kind in _CODES:
        try:
            told = json.loads(answer)
            code = next(told[name] for name in _CODES[kind] if name in told)
        except (ValueError, TypeError, StopIteration):
            return Outcome(False, False, f"{shown} (not what {ChannelKind(kind).label} answers)")
        return Outcome(code == 0, True, shown)
    return Outcome(True, False, shown)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Of our own webhook: what the receiver computes anew from the header's timestamp and the body."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def secrets_of(settings: Mapping[str, Any]) -> list[str]:
    """What of a channel's settings no page and no log may show."""
    found = [str(settings.get(name) or "") for name in ("secret", "password")]
    if url := str(settings.get("url") or ""):
        parts = urlsplit(url)
        found += [url, parts.path.strip("/"), parts.query, *(part for part in parts.path.split("/") if len(part) >= 8)]
        found += [value for _, value in parse_qsl(parts.query)]
    return sorted({secret for secret in found if len(secret) >= 4}, key=len, reverse=True)


def without_secrets(text: str, settings: Mapping[str, Any]) -> str:
    for secret in secrets_of(settings):
        for form in (secret, quote(secret, safe="")):
            text = text.replace(form, "…")
    return text


# ---- the kinds

_Built = tuple[str, bytes, dict[str, str]]


def _webhook(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> _Built:
    body, timestamp = notice.encode(), str(int(now))
    headers = {"X-Gantry-Timestamp": timestamp, "X-Gantry-Delivery": delivery}
    headers["X-Gantry-Signature"] = signature(settings["secret"], timestamp, body)
    return settings["url"], body, headers


def _slack(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> _Built:
    text = _cut(text_of(notice)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return settings["url"], _json({"text": text}), {}


def _dingtalk(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> _Built:
    url, secret = settings["url"], settings.get("secret")
    if secret:
        timestamp = str(int(now * 1000))
        sign = _hmac(secret, f"{timestamp}\n{secret}")
        url = _with_query(url, {"timestamp": timestamp, "sign": sign})
    return url, _json({"msgtype": "text", "text": {"content": _cut(text_of(notice))}}), {}


def _feishu(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> _Built:
    body: dict[str, Any] = {"msg_type": "text", "content": {"text": _cut(text_of(notice))}}
    if secret := settings.get("secret"):
        timestamp = str(int(now))
        body = {"timestamp": timestamp, "sign": _hmac(f"{timestamp}\n{secret}", "")} | body
    return settings["url"], _json(body), {}


def _wecom(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> _Built:
    text = text_of(notice).encode()[:WECOM_BYTES_MAX].decode("utf-8", "ignore")
    return settings["url"], _json({"msgtype": "text", "text": {"content": text}}), {}


_BUILDERS: dict[str, Callable[[Mapping[str, Any], str, float, str], _Built]] = {
    ChannelKind.WEBHOOK: _webhook,
    ChannelKind.SLACK: _slack,
    ChannelKind.DINGTALK: _dingtalk,
    ChannelKind.FEISHU: _feishu,
    ChannelKind.WECOM: _wecom,
}
_CODES: dict[str, tuple[str, ...]] = {  # where an answer of 200 says whether it was taken
    ChannelKind.DINGTALK: ("errcode",),
    ChannelKind.FEISHU: ("code", "StatusCode"),
    ChannelKind.WECOM: ("errcode",),
}


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
