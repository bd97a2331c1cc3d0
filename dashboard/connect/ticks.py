"""Four ticks between an installation and messages that are handled. Pure, but for what is known of clients."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext

from dashboard.clients.values import ClientListing
from dashboard.language.sentences import joined
from dashboard.status.board import Snapshot

NAMES_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Tick:
    """One step. told: what is there, or what to do."""

    title: str
    is_done: bool
    told: str


@dataclass(frozen=True, slots=True)
class Traces:
    """What clients left that have gone again: the topic that was written to last, the group that read last; "" none."""

    topic: str = ""
    group: str = ""


def ticks_of(snapshot: Snapshot | None, clients: ClientListing | None, traces: Traces = Traces()) -> tuple[Tick, ...]:
    """Name server, broker, producer, consumer. A client that has gone again has been there."""
    if snapshot is None:
        return tuple(
            Tick(title, False, gettext("not checked yet"))
            for title in (gettext("Name server"), gettext("Broker"), gettext("Producer"), gettext("Consumer"))
        )
    masters = [broker.name for broker in snapshot.masters if broker.is_answering]
    silent = next((broker for broker in snapshot.masters if not broker.is_answering), None)
    why = snapshot.namesrv_why
    broker_told = ", ".join(masters) or (
        f"{silent.name}: {silent.why}" if silent else gettext("none is registered yet")
    )
    named = clients.named if clients is not None else []
    senders = _named_groups([(one.name, one.sends_as) for one in named])
    readers = _named_groups([(one.name, one.consumer_groups) for one in named])
    return (
        Tick(gettext("Name server"), why is None, snapshot.namesrv if why is None else why),
        Tick(gettext("Broker"), bool(masters), broker_told),
        Tick(
            gettext("Producer"),
            bool(senders or traces.topic),
            _some(senders) or _written(traces.topic) or gettext("run the program below, or send one from here"),
        ),
        Tick(
            gettext("Consumer"),
            bool(readers or traces.group),
            _some(readers) or _read(traces.group) or gettext("run the program below"),
        ),
    )


def _named_groups(clients: list[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Groups of (client, its groups); a single client is named too, so that the one just started is found."""
    groups = sorted({group for _, groups in clients for group in groups})
    alone = [client for client, groups in clients if groups]
    if len(groups) == len(alone) == 1:
        return [gettext("%(group)s at %(client)s") % {"group": groups[0], "client": alone[0]}]
    return groups


def _written(topic: str) -> str:
    return gettext("not connected now; messages are in %(topic)s") % {"topic": topic} if topic else ""


def _read(group: str) -> str:
    return gettext("not connected now; %(group)s has read") % {"group": group} if group else ""


def _some(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return joined(names[:NAMES_SHOWN]) + (gettext(" and %(count)s more") % {"count": more} if more > 0 else "")
