"""What on-call services take: one alert a request, which its key opens, acknowledges and closes. Pure.

PagerDuty: Events API v2, event_action and dedup_key in the body, answered with 202; 429 and 5xx may be sent again.
Opsgenie: the Alert API v2, the key in a header, `alias` for what is opened, and in the address of what is acknowledged
or closed; answered with 202.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from dashboard.alerts.sending.chats import Built
from dashboard.alerts.sending.notices import ACKNOWLEDGED, FIRED, RESOLVED, TEST, text_of

CLIENT = "GantryMQ"
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
OPSGENIE = "https://api.opsgenie.com"
ROUTING_KEY_CHARS = 32
SUMMARY_CHARS_MAX = 1024
MESSAGE_CHARS_MAX, ENTITY_CHARS_MAX, DESCRIPTION_CHARS_MAX = 130, 512, 15_000  # Opsgenie's
_ACTIONS = {FIRED: "trigger", TEST: "trigger", ACKNOWLEDGED: "acknowledge", RESOLVED: "resolve"}
_SEVERITIES = {"attention": "warning", "problem": "critical"}
_PRIORITIES = {"attention": "P3", "problem": "P1"}


def pagerduty(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    told, one = _alert_of(notice)
    event: dict[str, Any] = {
        "routing_key": settings["routing_key"], "event_action": _ACTIONS[told["what"]],
        "dedup_key": _key(one, delivery),
    }  # fmt: skip
    if event["event_action"] == "trigger":
        link = one.get("link", "")
        event |= {"client": CLIENT, "payload": {
            "summary": told["title"][:SUMMARY_CHARS_MAX], "source": urlsplit(link).netloc or CLIENT,
            "severity": _SEVERITIES.get(one.get("level", ""), "info"),
        }}  # fmt: skip
        if one:
            event |= {"client_url": link, "links": [{"href": link, "text": one["title"]}]}
            event["payload"] |= {
                "timestamp": one["begun_at"], "component": one["subject"], "class": told["rule"],
                "custom_details": {"value": one["text"]},
            }  # fmt: skip
    return settings["endpoint"], _json(event), {}


def opsgenie(settings: Mapping[str, Any], notice: str, now: float, delivery: str) -> Built:
    told, one = _alert_of(notice)
    headers = {"Authorization": f"GenieKey {settings['api_key']}"}
    alias, begin = _key(one, delivery), f"{settings['endpoint'].rstrip('/')}/v2/alerts"
    if told["what"] == ACKNOWLEDGED:
        body = {"source": CLIENT, "user": one["acknowledged_by"], "note": text_of(notice)[:DESCRIPTION_CHARS_MAX]}
        return f"{begin}/{alias}/acknowledge?identifierType=alias", _json(body), headers
    if told["what"] == RESOLVED:
        body = {"source": CLIENT, "note": text_of(notice)[:DESCRIPTION_CHARS_MAX]}
        return f"{begin}/{alias}/close?identifierType=alias", _json(body), headers
    body = {
        "message": told["title"][:MESSAGE_CHARS_MAX], "alias": alias,
        "description": text_of(notice)[:DESCRIPTION_CHARS_MAX], "source": CLIENT,
        "priority": _PRIORITIES.get(one.get("level", ""), "P5"),
    }  # fmt: skip
    if one:
        details = {"rule": told["rule"], "link": one["link"]}
        body |= {"entity": one["subject"][:ENTITY_CHARS_MAX], "details": details}
    return begin, _json(body), headers


def _alert_of(notice: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The notice, and its one alert; a test has none."""
    told = json.loads(notice)
    return told, next(iter(told["alarms"]), {})


def _key(one: Mapping[str, Any], delivery: str) -> str:
    """What the service knows the alert by: of another dashboard's alert it is another one."""
    text = f"{urlsplit(one['link']).netloc} {one['key']}" if one else f"test {delivery}"
    return f"gantrymq-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
