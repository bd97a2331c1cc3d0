"""An import as pages and REST make it: the plan of a text, and the plan done, each change with its line in the audit
log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.conf import settings

from dashboard.audit.chain import Change, append
from dashboard.clients.listing import client_book
from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.definitions.applying import Dealt, Work, deal
from dashboard.definitions.checks import checked
from dashboard.definitions.document import DocumentRefused, as_text, items_of, read
from dashboard.definitions.losses import losses_of
from dashboard.definitions.plan import DefinitionChange, Plan, plan_of, with_losses
from dashboard.definitions.reading import Found, account_item, as_document, found
from dashboard.definitions.schemas import Section
from dashboard.language.sentences import gettext, in_english
from dashboard.models.audit import Result
from dashboard.topics.changes import Asker

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


async def _planned(gateway: Gateway, text: str, *, delete: bool) -> tuple[Plan, Found]:
    wanted = items_of(await asyncio.to_thread(read, text))
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
