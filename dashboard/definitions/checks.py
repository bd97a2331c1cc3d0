"""Why a change of an import can't be done, as far as that can be told before: so a preview says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.alerts.editing import channel_problems
from dashboard.alerts.rules import RULES_MAX
from dashboard.cluster.group_values import is_system_group
from dashboard.definitions.plan import DefinitionChange, Plan, refused
from dashboard.definitions.reading import Found
from dashboard.language.sentences import gettext, joined
from dashboard.models.alerts import ChannelKind
from dashboard.topics.forms import name_problem
from gantrymq.remoting.signature import KEY_CHARS_MIN


def checked(plan: Plan, there: Found, own_key: str) -> Plan:
    """The plan with its refusals. own_key: of the account that the dashboard signs with."""
    found = {(one.section, one.name): _why_not(one, plan, there, own_key) for one in plan.changes}
    return refused(plan, {place: why for place, why in found.items() if why})


def _why_not(change: DefinitionChange, plan: Plan, there: Found, own_key: str) -> str:
    match change.section:
        case "topics":
            return _topic(change, there.items["topics"].get(change.name, {}))
        case "groups":
            own = gettext("%(name)s is a group of the cluster itself.") % {"name": change.name}
            return own if is_system_group(change.name) else ""
        case "accounts":
            return _account(change, there, own_key)
        case "alert_channels":
            return _channel(change)
    return _rule(change, plan, there)


def _topic(change: DefinitionChange, known: Mapping[str, Any]) -> str:
    if change.what == "create" and (problem := name_problem(change.name)):
        return problem
    values = {**known, **change.after}
    write = values.get("write_queues")
    if change.what != "delete" and write is not None and (values.get("read_queues") or write) < write:
        return gettext("At least as many as write queues: messages of the others would never be read.")
    return ""


def _account(change: DefinitionChange, there: Found, own_key: str) -> str:
    if change.name == own_key:
        return gettext("The dashboard signs with this account.")
    if change.name in there.partial:
        told = gettext("Not every broker has %(name)s. `gantry admin accounts set %(name)s` gives it to all.")
        return told % {"name": change.name}
    if change.what == "create" and len(change.name) < KEY_CHARS_MIN:
        return gettext("An access key has at least %(count)s characters.") % {"count": KEY_CHARS_MIN}
    return ""


def _channel(change: DefinitionChange) -> str:
    if change.what == "change" and "kind" in change.after:
        return gettext("A channel keeps its kind: make another one.")
    if change.what != "create":
        return ""
    if "kind" not in change.after:
        return gettext("A new one needs %(fields)s.") % {"fields": "kind"}
    if change.after["kind"] != ChannelKind.MAIL:
        return gettext(
            "Its address or key is a secret, which no document holds: make it on the page Alerts, then import."
        )
    problems = channel_problems(ChannelKind.MAIL, change.after.get("settings", {}))
    return joined((text for texts in problems.values() for text in texts), "; ")


def _rule(change: DefinitionChange, plan: Plan, there: Found) -> str:
    if change.what == "create":
        missing = [name for name in ("kind", "threshold") if name not in change.after]
        if missing:
            return gettext("A new one needs %(fields)s.") % {"fields": ", ".join(missing)}
        if len(there.items["alert_rules"]) >= RULES_MAX:
            return gettext("There are %(count)s rules, which is the maximum.") % {"count": RULES_MAX}
    made = {one.name for one in plan.changes if (one.section, one.what) == ("alert_channels", "create")}
    gone = {one.name for one in plan.changes if (one.section, one.what) == ("alert_channels", "delete")}
    known = (there.items["alert_channels"].keys() | made) - gone
    unknown = [name for name in change.after.get("channels", ()) if name not in known]
    return gettext("There is no channel %(name)s.") % {"name": unknown[0]} if unknown else ""
