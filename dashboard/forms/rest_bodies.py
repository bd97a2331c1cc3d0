"""What REST takes for a form as it is filled in, for the lines that stand beside it. A secret is never among it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms

from dashboard.alerts.sending.channel_kinds import SECRETS
from dashboard.forms.fields import WhenField, parse_duration

Values = Mapping[str, Any]
HIDDEN = "…"


def values_of(form: forms.Form) -> dict[str, Any]:
    """The form's fields with what stands in them."""
    found = {}
    for field in form:
        value, chooser = field.value(), field.field
        if value in (None, "") and type(chooser) is forms.ChoiceField and chooser.required:
            value = field.subwidgets[0].data["value"]  # what a browser shows as chosen
        found[field.name] = value
    return found


def rule_body(values: Values) -> dict[str, Any]:
    """An alarm's rule."""
    body: dict[str, Any] = {
        "name": values["name"] or "orders are late",
        "kind": values["kind"] or "group-behind",
        "threshold": _number(values["threshold"], 300),
        "for_s": _seconds(values["for_s"], 0),
        "clear_s": _seconds(values["clear_s"], 0),
        "level": "problem" if str(values["level"]) == "2" else "attention",
        "is_on": bool(values["is_on"]),
        "channel_ids": [_number(key, key) for key in values.get("channels") or ()],
    }
    clear = _number(values["clear"], None)
    return body | ({"clear": clear} if clear is not None else {}) | _given(values, "pattern")


def channel_body(values: Values) -> dict[str, Any]:
    """A channel, but for its kind."""
    known = {key: value for key, value in values.items() if key not in ("name", "is_on")}
    settings = {
        key: HIDDEN if key in SECRETS else _number(value, value) if key == "port" else value
        for key, value in known.items()
        if value not in (None, "")
    }
    return {"name": values["name"] or "on call", "settings": settings, "is_on": bool(values["is_on"])}


def new_channel_body(values: Values) -> dict[str, Any]:
    """A channel that is made: its address has to be there, and is for the shell to fill in."""
    body = channel_body(values)
    needed = {name: HIDDEN for name in ("url", "routing_key", "api_key") if name in values}
    return body | {"settings": body["settings"] | needed}


def mute_body(values: Values) -> dict[str, Any]:
    """A mute; the moment of its end as it is now."""
    ends = _seconds(values["until"], None)
    until = (datetime.now(UTC) + timedelta(seconds=ends)).isoformat(timespec="seconds") if ends else values["until"]
    body = {"reason": values["reason"] or "maintenance", "ends_at": until}
    return body | ({"rule_id": _number(values["rule"], None)} if values["rule"] else {}) | _given(values, "pattern")


def plan_body(values: Values) -> dict[str, Any]:
    """When reports run."""
    numbers = {key: _number(values[key], 0) for key in ("interval_minutes", "days")}
    return numbers | {"reports": list(values["reports"] or ())} | _given(values, "cron", "zone")


def report_body(values: Values) -> dict[str, Any]:
    """A report to compute."""
    topics = (values.get("topics") or "").replace(",", " ").split()
    body = {"report": values["report"] or "traffic", "days": _number(values["days"], 7)}
    return body | ({"topics": topics} if topics else {}) | _given(values, "zone")


def promise_body(values: Values) -> dict[str, Any]:
    """How far behind a group may be."""
    return {"group": values["group"] or "", "seconds": _number(values["seconds"], 60)}


def weekly_body(values: Values) -> dict[str, Any]:
    """When the summary of a week is sent."""
    return {"channel_ids": [_number(key, key) for key in values["channels"] or ()]} | _given(values, "cron", "zone")


def reset_body(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The same for REST: numbers as numbers, and only what was filled in."""
    given = {key: wanted[key] for key in ("topics", "to", "at", "offset", "by", "source") if wanted.get(key)}
    numbers = {key: int(value) if key in ("offset", "by") else value for key, value in given.items()}
    return numbers | ({"at": moment_text(str(given["at"]))} if "at" in given else {})


def put_back_body(chosen: Mapping[str, str]) -> dict[str, str]:
    """What REST takes for the chosen letters."""
    return {key: moment_text(text) if key in ("since", "until") else text for key, text in chosen.items()}


def moment_text(text: str) -> str:
    """A time of a form as REST takes it; what the form refuses stays, so that REST says what is wrong with it."""
    try:
        at_ms = WhenField(required=False).clean(text)
    except forms.ValidationError:
        return text
    return datetime.fromtimestamp((at_ms or 0) / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


BODIES: dict[str, Callable[[Values], dict[str, Any]]] = {
    "rule": rule_body, "channel": channel_body, "new_channel": new_channel_body,
    "mute": mute_body, "plan": plan_body, "report": report_body,
    "promise": promise_body, "weekly": weekly_body,
}  # fmt: skip


def _given(values: Values, *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names if values.get(name)}


def _number(value: Any, otherwise: Any) -> Any:
    """A number as JSON has it; what is none as it is given, so that REST says what is wrong with it."""
    if value in (None, ""):
        return otherwise
    try:
        number = float(value)
    except (TypeError, ValueError):
        return value
    if not math.isfinite(number):
        return value
    return int(number) if number.is_integer() else number


def _seconds(text: Any, otherwise: float | None) -> float | None:
    try:
        return parse_duration(str(text), least_ms=0) / 1000 if text else otherwise
    except forms.ValidationError:
        return otherwise
