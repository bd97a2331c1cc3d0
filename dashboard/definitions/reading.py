"""What the cluster and the dashboard have, as the document says it. All of it or nothing: a document that lacks a
broker's part looks whole in a repository, and an import that does not know what is there could not tell what changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

from dashboard.alerts.rules import shown_rules
from dashboard.alerts.schemas import RuleOut
from dashboard.alerts.sending.channel_kinds import KINDS
from dashboard.cluster.errors import BrokerUnreachable, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import is_system_group
from dashboard.cluster.values import PartialFailure, TopicSummary
from dashboard.definitions.schemas import Definitions
from dashboard.language.sentences import gettext, joined
from dashboard.models.alerts import AlertChannel
from dashboard.topics.schemas import shown_perm
from gantrymq.client.admin.accounts import Account

Item = dict[str, Any]


@dataclass(slots=True)
class Found:
    """Section to name to fields. accounts_of: each broker's, by access key; partial: accounts that a broker lacks;
    why_not: of sections that can't be told."""

    items: dict[str, dict[str, Item]] = field(default_factory=dict)
    accounts_of: dict[str, dict[str, Account]] = field(default_factory=dict)
    partial: set[str] = field(default_factory=set)
    why_not: dict[str, str] = field(default_factory=dict)


async def found(gateway: Gateway, sections: Collection[str]) -> Found:
    """These sections as they are now. Raises BrokerUnreachable when one broker does not answer."""
    there = Found()
    if "topics" in sections:
        there.items["topics"] = await _topics(gateway)
    if "groups" in sections:
        there.items["groups"] = await _groups(gateway)
    if "accounts" in sections:
        await _accounts(gateway, there)
    if {"alert_channels", "alert_rules"} & set(sections):
        there.items |= await sync_to_async(_alerts)()
    return there


def as_document(there: Found) -> Definitions:
    """The document of what is there."""
    values: Item = {"version": 1}
    for section, items in there.items.items():
        key = "access_key" if section == "accounts" else "name"
        values[section] = [{key: name} | item for name, item in sorted(items.items())]
    return Definitions.model_validate(values)


async def _topics(gateway: Gateway) -> dict[str, Item]:
    gateway.topics.forget_listing()  # or one that was made just now may be missed
    listing = await gateway.topics.list()
    _whole(listing.failures)
    return {row.name: _topic(row) for row in listing.rows if row.kind == "normal"}


def _topic(row: TopicSummary) -> Item:
    """A value that differs between brokers is not in it: an import that says one makes them the same."""
    values: dict[str, set[int]] = {
        "write_queues": {one.write_queues for one in row.settings},
        "read_queues": {one.read_queues for one in row.settings},
        "order": {one.order for one in row.settings},
        "retention_ms": {one.retention_ms or 0 for one in row.settings},
        "retention_messages": {one.retention_messages or 0 for one in row.settings},
    }
    same = {name: min(found) for name, found in values.items() if len(found) == 1}
    perm = shown_perm(row.settings)
    return same | ({"perm": perm} if perm not in ("none", "differs") else {})


async def _groups(gateway: Gateway) -> dict[str, Item]:
    gateway.groups.forget_settings()
    cluster = await gateway.calls.cluster()
    answers, failures = await gateway.calls.ask_brokers(
        cluster.brokers, lambda admin, broker: admin.groups.configs_at(broker.address)
    )
    _whole(failures)
    at: dict[str, list[Item]] = {}
    for _, table in answers:
        for name, config in table.subscription_group_table.items():
            if not is_system_group(name):
                at.setdefault(name, []).append(dataclasses.asdict(config))
    return {name: _same(items, {"group_name"}) for name, items in at.items()}


async def _accounts(gateway: Gateway, there: Found) -> None:
    """The accounts of every broker. The dashboard's own is no definition: without it there is no dashboard."""
    cluster = await gateway.calls.cluster()
    answers, failures = await gateway.calls.ask_brokers(
        cluster.brokers, lambda admin, broker: admin.accounts.all_at(broker.address)
    )
    if not answers and failures:  # without access control a broker has no accounts to tell
        there.why_not["accounts"] = f"{failures[0].what}: {failures[0].reason}"
        return
    _whole(failures)
    own = settings.APPLIANCE.client_credentials
    own_key = own.access_key if own is not None else ""
    at: dict[str, list[Item]] = {}
    for broker, told in answers:
        known = {one.access_key: one for one in told.accounts if one.access_key != own_key}
        there.accounts_of[broker.name] = known
        for key, account in known.items():
            at.setdefault(key, []).append(account_item(account))
    there.partial = {key for key, items in at.items() if len(items) < len(answers)}
    there.items["accounts"] = {key: _same(items, set()) for key, items in at.items()}


def account_item(account: Account) -> Item:
    """An account of one broker as the document says it."""
    return {
        "admin": account.admin,
        "default_topic_perm": _perm(account.default_topic_perm or "DENY"),
        "default_group_perm": _perm(account.default_group_perm or "DENY"),
        "topic_perms": _perms(account.topic_perms),
        "group_perms": _perms(account.group_perms),
        "white_remote_address": account.white_remote_address or "",
    }


def _perms(entries: Iterable[str] | None) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in entries or ())
    return {name.strip(): _perm(perm.strip()) for name, _, perm in pairs}


def _perm(text: str) -> str:
    return "PUB|SUB" if text == "SUB|PUB" else text


def _alerts() -> dict[str, dict[str, Item]]:
    """Blocking. Raises NotAllowed when two rules have one name, by which the document tells them apart."""
    channels = {row.pk: row for row in AlertChannel.objects.all()}
    rules: dict[str, Item] = {}
    for row in shown_rules():
        if row.name in rules:
            told = gettext("Two alert rules are called %(name)s: give one of them another name.")
            raise NotAllowed(told % {"name": row.name})
        item = RuleOut.of(row).model_dump(mode="json", exclude={"id", "is_preset", "name"})
        rules[row.name] = item | {"channels": sorted(channels[one].name for one in item.pop("channel_ids"))}
    return {"alert_channels": {row.name: channel_item(row) for row in channels.values()}, "alert_rules": rules}


def channel_item(row: AlertChannel) -> Item:
    """A channel without its secrets: the address of a webhook or chat is one, too."""
    shown = KINDS[row.kind].shown(row.known_settings()) | {"language": row.language}
    given = {key: value for key, value in sorted(shown.items()) if value is not None}
    return {"kind": str(row.kind), "is_on": row.is_on, "settings": given}


def _same(items: list[Item], without: set[str]) -> Item:
    """The fields that have one value at every broker."""
    first, *others = items
    return {
        key: value for key, value in first.items()
        if key not in without and all(other[key] == value for other in others)
    }  # fmt: skip


def _whole(failures: Iterable[PartialFailure]) -> None:
    """Raises BrokerUnreachable for the first."""
    for failure in failures:
        raise BrokerUnreachable(joined([failure.what, failure.reason], ": "))
