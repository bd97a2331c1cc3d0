"""An import as pages and REST make it: the plan of a text, and the plan done, each change with its line in the audit
log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

from dashboard.alerts.editing import channel_problems
from dashboard.alerts.rules import RULES_MAX
from dashboard.audit.chain import Change, append
from dashboard.clients.listing import client_book
from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import is_system_group
from dashboard.definitions.applying import Dealt, Work, deal
from dashboard.definitions.document import DocumentRefused, as_text, items_of, read
from dashboard.definitions.losses import losses_of
from dashboard.definitions.plan import DefinitionChange, Plan, plan_of, refused, with_losses
from dashboard.definitions.reading import Found, account_item, as_document, found
from dashboard.definitions.schemas import Section
from dashboard.language.sentences import gettext, in_english, joined
from dashboard.models.alerts import ChannelKind
from dashboard.models.audit import Result
from dashboard.topics.changes import Asker
from dashboard.topics.forms import name_problem
from gantrymq.remoting.signature import KEY_CHARS_MIN

ALL: tuple[Section, ...] = ("topics", "groups", "accounts", "alert_channels", "alert_rules")
ACTIONS = {
    ("topics", "create"): "topic created", ("topics", "change"): "topic changed", ("topics", "delete"): "topic deleted",
    ("groups", "create"): "group created or changed", ("groups", "change"): "group created or changed",
    ("groups", "delete"): "group deleted",
    ("accounts", "create"): "client account created or changed",
    ("accounts", "change"): "client account created or changed", ("accounts", "delete"): "client account deleted",
    ("alert_channels", "create"): "alert channel created", ("alert_channels", "change"): "alert channel changed",
    ("alert_channels", "delete"): "alert channel deleted",
    ("alert_rules", "create"): "alert rule created", ("alert_rules", "change"): "alert rule changed",
    ("alert_rules", "delete"): "alert rule deleted",
}  # fmt: skip
_one_at_a_time = asyncio.Lock()


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of each change, and the secrets of new accounts."""

    plan: Plan
    dealt: tuple[Dealt, ...]
    secrets: dict[str, str]


async def exported(gateway: Gateway) -> str:
    """The document as text. Raises GatewayError."""
    return as_text(as_document(await found(gateway, ALL)))


async def planned(gateway: Gateway, text: str, *, delete: bool) -> Plan:
    """What importing the text would change. Raises DocumentRefused, GatewayError."""
    return (await _planned(gateway, text, delete=delete))[0]


async def imported(gateway: Gateway, text: str, asker: Asker, *, delete: bool, digest: str = "") -> Imported:
    """Do it. digest: of the plan that a person saw; when another one would be done now, nothing is.

    Raises DocumentRefused, NotAllowed, GatewayError.
    """
    if _one_at_a_time.locked():
        raise NotAllowed(gettext("Another import is running. Wait for its end."))
    async with _one_at_a_time:
        plan, there = await _planned(gateway, text, delete=delete)
        if digest and digest != plan.digest:
            raise NotAllowed(gettext("Something changed after the preview. Preview again: nothing was changed."))
        work, dealt = Work(gateway, there), list[Dealt]()
        for change in plan.now:
            one = await deal(work, change)
            await sync_to_async(_write_down)([one], asker)
            dealt.append(one)
        return Imported(plan, tuple(dealt), work.secrets)


async def items_in(text: str) -> dict[str, dict[str, dict[str, Any]]]:
    """`items_of` a text, read off the loop. In asyncio.to_thread it would not know the language of the page, which
    asgiref keeps. Raises DocumentRefused.
    """
    return items_of(await sync_to_async(read, thread_sensitive=False)(text))


async def _planned(gateway: Gateway, text: str, *, delete: bool) -> tuple[Plan, Found]:
    wanted = await items_in(text)
    there = await found(gateway, wanted.keys() | ({"alert_channels"} if "alert_rules" in wanted else set()))
    for section, why in there.why_not.items():
        raise DocumentRefused(f"{section}: {why}")
    own = settings.APPLIANCE.client_credentials
    known = there.items | {
        "accounts": {key: {} if key in there.partial else item for key, item in there.items.get("accounts", {}).items()}
    }
    plan = await _losing(gateway, plan_of(known, wanted, delete=delete), there)
    return checked(plan, there, own.access_key if own is not None else ""), there


async def _losing(gateway: Gateway, plan: Plan, there: Found) -> Plan:
    """The plan with what its accounts lose: those that are there, and would have less."""
    changed = [one for one in plan.changes if one.section == "accounts" and one.what != "create"]
    if not changed:
        return plan
    clients = (await client_book.listing(gateway)).clients
    losses = {}
    for one in changed:
        accounts = [account_item(known[one.name]) for known in there.accounts_of.values() if one.name in known]
        losses[one.name] = losses_of(one.name, accounts, None if one.what == "delete" else one.after, clients)
    return with_losses(plan, losses)


def _write_down(dealt: Sequence[Dealt], asker: Asker) -> None:
    append(
        [
            Change(
                who=asker.who, way=asker.way, address=asker.address, target=one.change.name,
                action=ACTIONS[one.change.section, one.change.what], details=_details(one.change),
                told=in_english(one.told), result=Result.DONE if one.is_done else Result.FAILED,
                request_id=asker.request_id,
            )
            for one in dealt
        ]
    )  # fmt: skip


def _details(change: DefinitionChange) -> dict[str, object]:
    if change.what == "change":
        return {key: {"before": change.before.get(key), "after": value} for key, value in change.after.items()}
    return dict(change.after or change.before)


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
