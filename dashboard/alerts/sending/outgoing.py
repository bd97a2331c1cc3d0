"""Requests to webhooks, chats and on-call services, and what their answers mean; the kinds are declared in
channel_kinds. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from dashboard.alerts.sending.channel_kinds import KINDS, SECRETS
from dashboard.models.alerts import ChannelKind

USER_AGENT = "GantryMQ"
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
    build = KINDS[kind].build
    assert build is not None, "a mail is no request"
    url, body, headers = build(settings, notice, now, delivery)
    always = {"Content-Type": "application/json; charset=utf-8", "User-Agent": USER_AGENT}
    return Outgoing(url, body, always | headers)


def outcome_of(kind: str, status: int, answer: str) -> Outcome:
    """What an answer means; its begin is for people."""
    shown = f"{status} {answer.strip()}"
    if not 200 <= status < 300:
        may_retry = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in RETRY_STATUS
        return Outcome(False, may_retry, shown)
    if codes := KINDS[kind].answer_codes:
        try:
            told = json.loads(answer)
            code = next(told[name] for name in codes if name in told)
        except (ValueError, TypeError, StopIteration):
            return Outcome(False, False, f"{shown} (not what {ChannelKind(kind).label} answers)")
        return Outcome(code == 0, True, shown)
    return Outcome(True, False, shown)


def secrets_of(settings: Mapping[str, Any]) -> list[str]:
    """What of a channel's settings no page and no log may show."""
    found = [str(settings.get(name) or "") for name in SECRETS if name != "url"]
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
