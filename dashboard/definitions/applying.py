"""One change of an import, done: by the calls that pages and REST make for the same. Each is idempotent: what another
import made meanwhile is found there, and an import that ended half-way is begun again.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from asgiref.sync import sync_to_async

from dashboard.alerts import editing
from dashboard.alerts.schemas import RuleOut
from dashboard.alerts.sending.channel_kinds import KINDS
from dashboard.cluster.errors import GatewayError, NotAllowed, Refused
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef
from dashboard.definitions.plan import DefinitionChange
from dashboard.definitions.reading import Found
from dashboard.definitions.schemas import (
    AccountDefinition,
    ChannelDefinition,
    GroupDefinition,
    RuleDefinition,
    Section,
)
from dashboard.groups.changes import delete_group
from dashboard.language.sentences import gettext
from dashboard.models.alerts import AlertChannel, AlertRule
from dashboard.topics.forms import PERMS
from dashboard.topics.schemas import TopicIn
from gantrymq.client.admin.accounts import Account
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import GantryError, PartlyDone
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig

SECRET_BYTES = 24


@dataclass(slots=True)
class Work:
    """What an import works with. secrets: of new accounts, by access key."""

    gateway: Gateway
    there: Found
    secrets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dealt:
    """What became of a change. told: why it failed."""

    change: DefinitionChange
    is_done: bool
    told: str = ""


async def deal(work: Work, change: DefinitionChange) -> Dealt:
    """Do it, unless it is refused."""
    if change.refusal:
        return Dealt(change, False, change.refusal)
    try:
        await _ACTS[change.section](work, change)
    except (GatewayError, GantryError, OSError) as exc:
        return Dealt(change, False, str(exc))
    return Dealt(change, True)


async def _topic(work: Work, change: DefinitionChange) -> None:
    topics = work.gateway.topics
    if change.what == "delete":
        await topics.delete(change.name)
        return
    said = dict(change.after)
    perm = PERMS[said["perm"]] if "perm" in said else None
    if change.what == "create":
        new = TopicIn(name=change.name, **{key: value for key, value in said.items() if value != 0})
        await topics.create(
            new.name, queues=new.write_queues, read_queues=new.read_queues, perm=PERMS[new.perm], order=new.order,
            retention_ms=new.retention_ms, retention_messages=new.retention_messages,
        )  # fmt: skip
    else:
        await topics.change(change.name, **said | ({} if perm is None else {"perm": perm}))


async def _group(work: Work, change: DefinitionChange) -> None:
    """A new one on every broker, a known one where it is."""
    if change.what == "delete":
        await delete_group(work.gateway, change.name)
        return
    calls = work.gateway.calls
    GroupDefinition.model_validate({"name": change.name, **change.after})

    async def tell(admin: AdminClient, broker: BrokerRef) -> None:
        table = (await admin.groups.configs_at(broker.address)).subscription_group_table
        known = table.get(change.name)
        if known is not None or change.what == "create":
            config = known or SubscriptionGroupConfig(change.name)
            await admin.groups.create_at(broker.address, replace(config, **change.after))

    try:
        await calls.tell_brokers((await calls.cluster()).brokers, tell)
    finally:
        work.gateway.groups.forget_settings()


async def _account(work: Work, change: DefinitionChange) -> None:
    """At one broker after the other, as those of one machine share their files. Raises Refused."""
    masters = {one.name: one.address for one in (await work.gateway.calls.cluster()).brokers}
    key = change.name
    admin = await work.gateway.calls.admin()
    try:
        if change.what == "delete":
            await admin.accounts.delete(key, masters)
            return
        said = AccountDefinition.model_validate({"access_key": key, **change.after})
        known = {name: work.there.accounts_of.get(name, {}).get(key, Account(key)) for name in masters}
        secret = secrets.token_urlsafe(SECRET_BYTES) if change.what == "create" else None
        if secret is not None:  # some brokers may have it although others fail
            work.secrets[key] = secret
            said = AccountDefinition(**{name: getattr(said, name) for name in AccountDefinition.model_fields})
        wanted = {name: said.changed(account) for name, account in known.items()}
        await admin.accounts.set(wanted, masters, secret_key=secret)
    except PartlyDone as exc:
        if not exc.done:
            work.secrets.pop(key, None)
        raise Refused("; ".join(f"{name}: {failure}" for name, failure in exc.failures.items())) from exc


async def _channel(work: Work, change: DefinitionChange) -> None:
    await sync_to_async(_save_channel)(change)


def _save_channel(change: DefinitionChange) -> None:
    """Its secrets stay: `save_channel` puts them back in. Raises NotTaken, NotAllowed."""
    row = AlertChannel.objects.filter(name=change.name).first()
    if change.what == "delete":
        if row is not None:
            row.delete()
        return
    if row is None and change.what == "change":
        raise _gone(change)
    said = ChannelDefinition.model_validate({"name": change.name, **change.after})
    before: Mapping[str, Any] = {} if row is None else row.known_settings()
    kind = said.kind if row is None else row.kind
    is_on = said.is_on if row is None or "is_on" in change.after else row.is_on
    kept = {name: value for name, value in before.items() if name not in KINDS[kind].secrets}
    editing.save_channel(change.name, kind, kept | said.settings, is_on, row)


async def _rule(work: Work, change: DefinitionChange) -> None:
    await sync_to_async(_save_rule)(change)


def _save_rule(change: DefinitionChange) -> None:
    """Raises NotTaken, NotAllowed."""
    row = AlertRule.objects.filter(name=change.name, deleted_at=None).first()
    if change.what == "delete":
        if row is not None:
            editing.delete_rule(row)
        return
    if row is None and change.what == "change":
        raise _gone(change)
    known = {} if row is None else _known_rule(row)
    said = RuleDefinition.model_validate({"name": change.name, **known, **change.after})
    ids = dict(AlertChannel.objects.filter(name__in=said.channels).values_list("name", "pk"))
    missing = [name for name in said.channels if name not in ids]
    if missing:
        raise NotAllowed(gettext("There is no channel %(name)s.") % {"name": missing[0]})
    editing.save_rule(said.values_with(list(ids.values())), row)


def _known_rule(row: AlertRule) -> dict[str, Any]:
    values = RuleOut.of(row).model_dump(mode="json", exclude={"id", "is_preset", "name", "channel_ids"})
    return values | {"channels": [channel.name for channel in row.channels.all()]}


def _gone(change: DefinitionChange) -> NotAllowed:
    return NotAllowed(gettext("%(name)s was deleted in between.") % {"name": change.name})


_ACTS: dict[Section, Callable[[Work, DefinitionChange], Awaitable[None]]] = {
    "topics": _topic,
    "groups": _group,
    "accounts": _account,
    "alert_channels": _channel,
    "alert_rules": _rule,
}
