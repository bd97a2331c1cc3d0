"""Changes of a consumer group: consuming off and on, how it consumes, deleting it. Page and REST do the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from dashboard.cluster.calls import CALL_ERRORS
from dashboard.cluster.errors import BrokerUnreachable, GatewayError, NotAllowed, Refused, TopicNotFound, explain
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import is_system_group
from dashboard.cluster.values import BrokerRef
from dashboard.groups.group_cache import group_book
from dashboard.language.sentences import gettext, joined
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ResponseError
from gantrymq.message.topics import dlq_topic

MODE_CHANGED = "consume mode changed"  # in the audit log
ALL_TIMEOUT_S = 15.0  # each broker in turn, then two topics


async def set_consuming(gateway: Gateway, name: str, *, is_on: bool) -> list[str]:
    """Let the group consume, or not, at every broker that knows it; returns those that changed.

    What waits stays there, and the group keeps its place. Raises GroupNotFound, NotAllowed, Refused,
    BrokerUnreachable.
    """
    detail = await gateway.groups.get(name)
    _refuse_system(name)
    wanted = {item.broker_name for item in detail.settings if item.consume_enable is not is_on}
    cluster = await gateway.calls.cluster()

    async def change(admin: AdminClient, broker: BrokerRef) -> None:
        table = (await admin.groups.configs_at(broker.address)).subscription_group_table
        if name in table:  # with all else that the broker keeps of it
            await admin.groups.create_at(broker.address, replace(table[name], consume_enable=is_on))

    try:
        await gateway.calls.tell_brokers([one for one in cluster.brokers if one.name in wanted], change)
    finally:
        gateway.groups.forget_settings()
    group_book.forget(name)
    return sorted(wanted)


def consuming_facts(brokers: Sequence[str], *, is_on: bool) -> dict[str, Any]:
    """What the audit log says of it."""
    return {"brokers": ", ".join(brokers), "consuming": {"before": not is_on, "after": is_on}} if brokers else {}


async def set_mode(gateway: Gateway, name: str, topic: str, mode: str) -> list[str]:
    """Have the group consume the topic by "POP" or "PULL" at every broker that has it; returns these.

    Nothing is lost or skipped. Raises GroupNotFound, TopicNotFound, NotAllowed, Refused, BrokerUnreachable.
    """
    await gateway.groups.get(name)
    await gateway.topics.get(topic)
    _refuse_system(name)
    return await _at_all(
        gateway,
        gettext("Perhaps changed at some brokers: %(why)s"),
        lambda admin: admin.groups.set_mode(name, topic, mode),
    )


async def delete_group(gateway: Gateway, name: str) -> list[str]:
    """Delete it with its offsets, its retries and its dead letters; returns the brokers that had it.

    Not while a member is connected: it would come back with the next heartbeat, without its place. Raises
    GroupNotFound, NotAllowed, Refused, BrokerUnreachable.
    """
    detail = await gateway.groups.get(name)
    _refuse_system(name)
    if detail.failures:
        raise BrokerUnreachable(joined([detail.failures[0].what, detail.failures[0].reason], ": "))
    if detail.clients:
        told = gettext("%(count)s members are connected. Stop them first, or the group comes back.")
        raise NotAllowed(told % {"count": len(detail.clients)})
    return await _at_all(gateway, gettext("Perhaps partly deleted: %(why)s"), lambda admin: admin.groups.delete(name))


async def _at_all(gateway: Gateway, trouble: str, tell: Callable[[AdminClient], Awaitable[list[str]]]) -> list[str]:
    """Have each broker that is concerned do it, in turn. trouble: what is said when one does not."""
    try:
        return await gateway.calls.call(tell, ALL_TIMEOUT_S)
    except ResponseError as exc:
        raise Refused(trouble % {"why": explain(exc)}) from exc
    except CALL_ERRORS as exc:
        raise BrokerUnreachable(trouble % {"why": explain(exc)}) from exc
    finally:
        gateway.groups.forget_settings()
        gateway.topics.forget_listing()  # retries and dead letters have topics
        group_book.clear()  # the list, too, which pages share for some seconds


async def dead_letters_of(gateway: Gateway, name: str) -> int | None:
    """How many dead letters the group has; None when that is not known."""
    try:
        return (await gateway.topics.get(dlq_topic(name))).stored
    except TopicNotFound:
        return 0
    except GatewayError:
        return None


def _refuse_system(name: str) -> None:
    if is_system_group(name):
        raise NotAllowed(gettext("%(name)s is a group of the cluster itself.") % {"name": name})
