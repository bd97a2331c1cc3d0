"""Entries of the name servers' key-value table, by namespace. Pages and REST read and change it here.

No request of RocketMQ lists the namespaces: a namespace has to be named.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from django.http import HttpRequest

from dashboard.audit.notes import changed, note
from dashboard.cluster.calls import CALL_ERRORS
from dashboard.cluster.errors import ClusterUnreachable, EntryNotFound, GatewayError, Refused, explain
from dashboard.cluster.gateway import gateway
from dashboard.language.sentences import gettext
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import PartlyDone, ResponseError
from gantrymq.remoting.codes import RequestCode, ResponseCode

SET, REMOVED = "name server's KV entry set", "name server's KV entry removed"
# A silent name server costs the client's own limit: only then another one is asked, or is it known which took it.
TIMEOUT_S = 10.0
ORDER_TOPICS = "ORDER_TOPIC_CONFIG"  # RocketMQ's own namespace: topic to its queues by broker, "broker-a:4"

Answer = TypeVar("Answer")


async def entries_of(namespace: str) -> list[tuple[str, str]]:
    """Keys and values by key, none when there is no such namespace. Raises Refused, ClusterUnreachable."""
    return sorted((await _ask(lambda admin: admin.name_servers.list_kv(namespace))).items())


async def value_of(namespace: str, key: str) -> str | None:
    """None when no name server that answers has the entry: some may have missed a change. Raises Refused,
    ClusterUnreachable.
    """

    async def at(admin: AdminClient, address: str) -> str | None:
        try:
            answer = await admin.calls.call(address, RequestCode.GET_KV_CONFIG, {"namespace": namespace, "key": key})
        except ResponseError as exc:
            if exc.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return answer.ext_fields.get("value")

    async def at_all(admin: AdminClient) -> str | None:
        found, failures = await ask_each(admin.name_servers.addresses, lambda address: at(admin, address))
        if not found:
            raise next(iter(failures.values()))
        return next((value for value in found.values() if value is not None), None)

    return await _ask(at_all)


async def put(request: HttpRequest, namespace: str, key: str, value: str) -> str | None:
    """Set the entry at every name server, also where one has it already: another may have missed it. What it was.

    Raises Refused, ClusterUnreachable.
    """
    before = await value_of(namespace, key)
    await _change(request, SET, namespace, key, before, value)
    return before


async def remove(request: HttpRequest, namespace: str, key: str) -> str:
    """Remove the entry from every name server; what it was. Raises EntryNotFound, Refused, ClusterUnreachable."""
    before = await value_of(namespace, key)
    if before is None:
        raise no_entry(namespace, key)
    await _change(request, REMOVED, namespace, key, before, None)
    return before


def no_entry(namespace: str, key: str) -> EntryNotFound:
    return EntryNotFound(gettext("There is no %(key)s in %(namespace)s.") % {"key": key, "namespace": namespace})


async def _change(
    request: HttpRequest, action: str, namespace: str, key: str, before: str | None, after: str | None
) -> None:
    """At every name server, and in the audit log: also when some of them did not confirm it."""

    async def tell(admin: AdminClient) -> None:
        if after is None:
            await admin.name_servers.delete_kv(namespace, key)
        else:
            await admin.name_servers.put_kv(namespace, key, after)

    failed_at: list[str] = []
    try:
        await gateway().calls.call(tell, TIMEOUT_S)
    except PartlyDone as exc:
        if exc.done:
            failed_at = sorted(exc.failures)
        else:
            raise Refused(explain(exc)) from exc
    except CALL_ERRORS as exc:
        raise _failure(exc) from exc
    note(
        request,
        action,
        namespace,
        {"key": key, "failed_at": ", ".join(failed_at)} | changed({"value": before}, {"value": after}),
    )
    if failed_at:
        text = gettext("Some name servers did not confirm it: %(addresses)s. Repeat it when they answer.")
        raise Refused(text % {"addresses": ", ".join(failed_at)})


async def _ask(ask: Callable[[AdminClient], Awaitable[Answer]]) -> Answer:
    try:
        return await gateway().calls.call(ask, TIMEOUT_S)
    except CALL_ERRORS as exc:
        raise _failure(exc) from exc


def _failure(exc: Exception) -> GatewayError:
    return Refused(explain(exc)) if isinstance(exc, ResponseError) else ClusterUnreachable(explain(exc))
