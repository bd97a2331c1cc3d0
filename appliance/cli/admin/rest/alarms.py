"""`gantry admin alarms`, `alarm-rules`, `alarm-channels` and `silences`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

from appliance.cli.admin.options import not_negative, positive
from appliance.cli.admin.rest.calls import Call
from appliance.cli.admin.rest.fields import Field
from appliance.cli.admin.rest.values import choice, number, seconds
from appliance.settings.alarm_names import ChannelKind, RuleKind, RuleLevel

RULES = ("/alarms/rules", "")
CHANNELS = ("/alarms/channels", "")
PAGE = (
    Field("offset", "--skip", "leave out so many", not_negative),
    Field("limit", "--limit", "show at most so many (default: 50)", positive),
)


def _until(text: str) -> str:
    """A moment, or how long from now, as REST takes it."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            at = datetime.now(UTC) + timedelta(seconds=seconds(text))
        except argparse.ArgumentTypeError:
            raise argparse.ArgumentTypeError(f"{text!r} is no time: use 2h (from now), or 2026-11-21T10:00") from None
    return at.astimezone().isoformat(timespec="seconds") if at.tzinfo is None else at.isoformat()


def _rule(*, is_new: bool) -> tuple[Field, ...]:
    return (
        Field("name", "NAME" if is_new else "--name", "what notices call it", is_needed=is_new),
        Field("kind", "KIND" if is_new else "--kind", ", ".join(RuleKind), choice(*RuleKind), is_needed=is_new),
        Field(
            "threshold",
            "--threshold",
            "seconds, messages, percent, hours or messages a second, as the kind says",
            number,
            is_needed=is_new,
        ),
        Field("clear", "--clear", "it is over past this value", number, nothing="--clear-at-threshold"),
        Field("for_s", "--for", "how long it is beyond the threshold before it rings: 30s, 5min", seconds),
        Field("clear_s", "--clear-for", "how long it is past --clear before it is over", seconds),
        Field("pattern", "--about", "only groups, topics or brokers of such names: orders-*"),
        Field("level", "--level", " or ".join(RuleLevel), choice(*RuleLevel)),
        Field("is_on", "--on", "it watches", kind="switch", nothing="--off"),
        Field(
            "channels",
            "--channel",
            "the id of a channel that is told; repeatable",
            positive,
            kind="many",
            nothing="--all-channels",
        ),
    )


def _channel(*, is_new: bool) -> tuple[Field, ...]:
    return (
        Field("name", "NAME" if is_new else "--name", "what pages call it", is_needed=is_new),
        Field("kind", "KIND" if is_new else "--kind", ", ".join(ChannelKind), choice(*ChannelKind), is_needed=is_new),
        Field(
            "settings",
            "--set",
            "of mail host, port, security, username, sender, recipients; the address (url), "
            "secret and password take --ask",
            kind="pairs",
        ),
        Field("is_on", "--on", "it is told", kind="switch", nothing="--off"),
    )


CALLS = {
    "alarms": {
        "list": Call(
            "what rings, and what rang", "GET", "/alarms",
            query=(Field("only_open", "--open", "only what rings now", kind="switch", nothing="--all"), *PAGE),
            rows="alarms", columns=("level", "title", "text", "begun_at", "ended_at", "is_told", "rule"),
        ),
        "deliveries": Call(
            "notices that were sent, and how that went", "GET", "/alarms/deliveries", query=PAGE, rows="deliveries",
            columns=("id", "channel", "what", "title", "state", "attempts", "made_at", "answer"),
        ),
    },
    "alarm-rules": {
        "list": Call(
            "rules, with their ids", "GET", "/alarms/rules",
            columns=("id", "name", "kind", "threshold", "clear", "for_s", "pattern", "level", "is_on", "channels"),
        ),
        "create": Call("make a rule", "POST", "/alarms/rules", _rule(is_new=True)),
        "set": Call(
            "change a rule; what is not given stays", "PUT", "/alarms/rules/{rule_id}", _rule(is_new=False),
            before=RULES,
        ),
        "delete": Call(
            "delete a rule, which ends its alarms", "DELETE", "/alarms/rules/{rule_id}", before=RULES,
            done="rule {rule_id} is deleted; for a day the page of alarms can have it back", loses=True,
        ),
        "preview": Call(
            "how often a rule would have rung, by the history", "GET", "/alarms/rules/{rule_id}/would-have-rung"
        ),
    },
    "alarm-channels": {
        "list": Call("who is told, with their ids; no secret is shown", "GET", "/alarms/channels",
                     columns=("id", "name", "kind", "is_on", "settings")),
        "create": Call("make a channel", "POST", "/alarms/channels", _channel(is_new=True)),
        "set": Call(
            "change a channel; what is not given stays, secrets too", "PUT", "/alarms/channels/{channel_id}",
            _channel(is_new=False), before=CHANNELS,
        ),
        "delete": Call(
            "delete a channel and its deliveries", "DELETE", "/alarms/channels/{channel_id}", before=CHANNELS,
            done="channel {channel_id} is deleted", loses=True,
        ),
        "test": Call("send a test now, and show the answer", "POST", "/alarms/channels/{channel_id}/test",
                     fails=("state", "failed")),
    },
    "silences": {
        "list": Call("silences in force, with their ids", "GET", "/alarms/silences",
                     columns=("id", "rule", "pattern", "reason", "who", "begun_at", "until")),
        "create": Call(
            "hold notices back until a moment", "POST", "/alarms/silences",
            (
                Field("reason", "REASON", "why", is_needed=True),
                Field("until", "--until", "2h (from now), or 2026-11-21T10:00", _until, is_needed=True),
                Field("rule", "--rule", "the id of one rule (default: every rule)", positive, nothing="--every-rule"),
                Field("pattern", "--about", "only groups, topics or brokers of such names: orders-*"),
            ),
        ),
        "end": Call("end a silence", "DELETE", "/alarms/silences/{silence_id}", done="silence {silence_id} has ended"),
    },
}  # fmt: skip
