"""One change for many topics: what is wanted of them, and how it is done to one of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal

from dashboard.cluster.errors import GatewayError, NotAllowed, TopicNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import TopicSummary
from dashboard.groups.forms import TO_BEGIN
from dashboard.groups.moving import move_all
from dashboard.language.sentences import gettext, joined
from dashboard.limits.names import NameRefused
from dashboard.models.audit import Way
from gantrymq.client.admin.offsets import TO_END
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE

logger = logging.getLogger(__name__)

TOPICS_MAX = 500  # of one run

RESETS = {"reset-to-end": TO_END, "reset-to-begin": TO_BEGIN}  # not twice: they would pass what came meanwhile

PERM_WORDS: dict[int, Literal["read-write", "read", "write"]] = {
    PERM_READ | PERM_WRITE: "read-write", PERM_READ: "read", PERM_WRITE: "write",
}  # fmt: skip

What = Literal["perm", "queues", "retention", "reset-to-end", "reset-to-begin", "delete"]


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What is to become of each topic. queues: both numbers; retention: what is None falls back to the brokers' own;
    reset-to-end, reset-to-begin: the offsets of all its groups."""

    what: What
    perm: int | None = None
    read_queues: int | None = None
    write_queues: int | None = None
    retention_ms: int | None = None
    retention_messages: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """For the audit log: what was asked for."""
        values = {"perm": ("perm",), "queues": ("read_queues", "write_queues"),
                  "retention": ("retention_ms", "retention_messages")}.get(self.what, ())  # fmt: skip
        return {"what": self.what} | {name: getattr(self, name) for name in values}


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """What a change would make of one topic, as REST says it. before: None where brokers differ, 0: no limit of its
    own. Both are empty where nothing would change, and for what changes no setting."""

    topic: str
    before: dict[str, Any]
    after: dict[str, Any]


def difference_of(wanted: TopicChange, row: TopicSummary) -> TopicDifference:
    before: dict[str, Any] = {}
    after = {name: _said(name, value) for name, value in wanted.facts.items() if name != "what"}
    for name, value in after.items():
        values = {_said(name, getattr(one, name)) for one in row.settings}
        if values != {value}:
            before[name] = values.pop() if len(values) == 1 else None
    return TopicDifference(row.name, before, {name: after[name] for name in before})


def _said(name: str, value: int | None) -> int | str:
    return PERM_WORDS.get((value or 0) & (PERM_READ | PERM_WRITE), "none") if name == "perm" else value or 0


@dataclass(frozen=True, slots=True)
class Asker:
    """Who wants it, as the audit log has it."""

    who: str
    way: Way
    address: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Dealt:
    """What became of one topic: done, or why not. told: more about it, in words."""

    is_done: bool
    told: str = ""


async def deal(gateway: Gateway, wanted: TopicChange, name: str, who: str, *, was_begun: bool) -> Dealt:
    """Change one topic. was_begun: a web process began it and ended, so that it may have been done already."""
    if was_begun and wanted.what in RESETS:
        return Dealt(False, gettext("Unknown: the dashboard ended during it. The groups' pages show their offsets."))
    try:
        return Dealt(True, await _change(gateway, wanted, name, who))
    except TopicNotFound as exc:
        return Dealt(was_begun and wanted.what == "delete", "" if was_begun else str(exc))
    except (GatewayError, NameRefused) as exc:
        return Dealt(False, str(exc))
    except Exception:  # a bug with one topic must not end the others' change, nor leave a run that never ends
        logger.exception("changing a topic failed", extra={"event": "topic_change_failed", "topic": name})
        return Dealt(False, gettext("This is a fault in GantryMQ. The web process's log has the details."))


async def _change(gateway: Gateway, wanted: TopicChange, name: str, who: str) -> str:
    match wanted.what:
        case "delete":
            await gateway.topics.delete(name)
        case "reset-to-end" | "reset-to-begin" as reset:
            return await _move_groups(gateway, name, RESETS[reset], who)
        case "perm":
            await gateway.topics.change(name, perm=wanted.perm)
        case "queues":
            await gateway.topics.change(name, read_queues=wanted.read_queues, write_queues=wanted.write_queues)
        case "retention":
            await gateway.topics.change(
                name, retention_ms=wanted.retention_ms or 0, retention_messages=wanted.retention_messages or 0
            )
    return ""


async def _move_groups(gateway: Gateway, name: str, timestamp_ms: int, who: str) -> str:
    """All groups of a topic that have offsets at the brokers: those that broadcast have none. Raises NotAllowed when
    one could not be moved; the others are."""
    groups, failures = await gateway.groups.of_topic(await gateway.topics.get(name))
    if failures:
        raise NotAllowed(f"{failures[0].what}: {failures[0].reason}")
    told, troubles = [], []
    for group in (one for one in groups if not one.is_broadcasting):
        plan = await gateway.groups.plan_reset(group.name, name, timestamp_ms, None)
        if plan.refusal:
            troubles.append(f"{group.name}: {plan.refusal}")
            continue
        [moved] = await move_all(gateway, [plan], who)
        if moved.trouble:
            troubles.append(f"{group.name}: {moved.trouble}")
        else:
            told.append(f"{group.name} ({plan.skipped or plan.repeated})")
    if troubles:
        raise NotAllowed(
            joined([*troubles, *(gettext("Offsets of %(group)s reset") % {"group": one} for one in told)], "; ")
        )
    return (
        gettext("offsets reset: %(groups)s") % {"groups": joined(told)}
        if told
        else gettext("no group has offsets in it")
    )
