"""One change for many topics: a run that goes on when the page is closed, with what became of each topic.

Runs live in the web process and end with it: every topic that was dealt with has its line in the audit log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.utils.translation import gettext_noop

from dashboard.audit.chain import Change, append
from dashboard.cluster.errors import GatewayError, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.forms.groups import TO_BEGIN
from dashboard.groups.moving import move_all
from dashboard.language.sentences import gettext, in_english, joined
from dashboard.limits.names import NameRefused, current
from dashboard.models.audit import Result, Way
from gantrymq.client.admin.offsets import TO_END

logger = logging.getLogger(__name__)

TOPICS_MAX = 500  # of one run
RUNS_AT_ONCE = 2
RUNS_KEPT = 50
AT_ONCE = 4  # topics of a run: a dashboard must never be able to hurt a broker

What = Literal["access", "queues", "keep", "skip", "again", "delete"]
State = Literal["running", "done", "stopped"]


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What is to become of each topic. access: perm; queues: both numbers; keep: what is None falls back to the
    brokers' own; skip, again: all groups go to the end, to the beginning."""

    what: What
    perm: int | None = None
    read_queues: int | None = None
    write_queues: int | None = None
    retention_ms: int | None = None
    retention_messages: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """For the audit log: what was asked for."""
        values = {"access": ("perm",), "queues": ("read_queues", "write_queues"),
                  "keep": ("retention_ms", "retention_messages")}.get(self.what, ())  # fmt: skip
        return {"what": self.what} | {name: getattr(self, name) for name in values}


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


@dataclass(slots=True)
class ChangeRun:
    """One run. dealt: topic → what became of it, in the order in which they were dealt with."""

    number: int
    wanted: TopicChange
    topics: tuple[str, ...]
    asker: Asker
    started_at: float
    dealt: dict[str, Dealt] = field(default_factory=dict)
    state: State = "running"
    ended_at: float | None = None
    stopped_by: str = ""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    @property
    def done(self) -> int:
        return sum(one.is_done for one in self.dealt.values())

    @property
    def failed(self) -> int:
        return len(self.dealt) - self.done

    @property
    def rows(self) -> list[tuple[str, Dealt | None]]:
        """Each topic with what became of it; those that failed come first, those that wait last."""
        dealt = sorted(self.dealt.items(), key=lambda item: item[1].is_done)
        return [*dealt, *((name, None) for name in self.topics if name not in self.dealt)]


class ChangeRuns:
    """The runs of this process."""

    def __init__(self) -> None:
        self._runs: dict[int, ChangeRun] = {}
        self._last = 0

    def start(self, gateway: Gateway, wanted: TopicChange, topics: Sequence[str], asker: Asker) -> ChangeRun:
        """Begin, with the names that the running account may touch. Raises NotAllowed."""
        names = tuple(dict.fromkeys(topics))
        if not names or len(names) > TOPICS_MAX:
            raise NotAllowed(gettext("Choose 1 to %(topics_max)s topics.") % {"topics_max": TOPICS_MAX})
        for name in names:
            if not current().allows(name):
                raise current().refusal()
        if sum(run.is_running for run in self._runs.values()) >= RUNS_AT_ONCE:
            raise NotAllowed(
                gettext("%(runs_at_once)s changes of many topics run already. Wait for one, or stop it.")
                % {"runs_at_once": RUNS_AT_ONCE}
            )
        self._last += 1
        run = self._runs[self._last] = ChangeRun(self._last, wanted, names, asker, time.time())
        run.task = asyncio.get_running_loop().create_task(self._work(gateway, run), name=f"topic changes {run.number}")
        for number in sorted(self._runs)[:-RUNS_KEPT]:
            if not self._runs[number].is_running:
                del self._runs[number]
        return run

    def found(self, number: int) -> ChangeRun:
        """Raises RunNotFound, also for a run with names beyond the account's."""
        run = self._runs.get(number)
        if run is None or not all(map(current().allows, run.topics)):
            raise RunNotFound(gettext("There is no run %(number)s.") % {"number": number})
        return run

    @property
    def newest(self) -> list[ChangeRun]:
        """The newest first."""
        may = current().allows
        return [run for _, run in sorted(self._runs.items(), reverse=True) if all(map(may, run.topics))]

    def stop(self, number: int, username: str) -> ChangeRun:
        """It begins with no further topic. Raises RunNotFound, NotAllowed."""
        run = self.found(number)
        if not run.is_running:
            raise NotAllowed(gettext("It has ended already."))
        run.state, run.stopped_by = "stopped", username
        return run

    async def _work(self, gateway: Gateway, run: ChangeRun) -> None:
        waiting = iter(run.topics)

        async def worker() -> None:
            for name in waiting:
                if not run.is_running:
                    return
                run.dealt[name] = dealt = await _deal(gateway, run, name)
                await _write_down(run, name, dealt)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        run.ended_at = time.time()
        if run.is_running:
            run.state = "done"
        facts = {"event": "topic_changes_ended", "run": run.number, "done": run.done, "failed": run.failed}
        logger.info("change of many topics ended", extra=facts | {"state": run.state, "username": run.asker.who})


class RunNotFound(GatewayError):
    """No such run, or it is forgotten."""

    status = 404
    advice = gettext_noop("Runs are known until the dashboard starts again. The audit log has every topic's result.")


async def _deal(gateway: Gateway, run: ChangeRun, name: str) -> Dealt:
    try:
        return Dealt(True, await _change(gateway, run.wanted, name, run.asker.who))
    except (GatewayError, NameRefused) as exc:
        return Dealt(False, str(exc))
    except Exception:  # a bug with one topic must not end the others' change, nor leave a run that never ends
        logger.exception("changing a topic failed", extra={"event": "topic_change_failed", "topic": name})
        return Dealt(False, gettext("A fault in GantryMQ; the log of the web process has it."))


async def _change(gateway: Gateway, wanted: TopicChange, name: str, who: str) -> str:
    match wanted.what:
        case "delete":
            await gateway.topics.delete(name)
        case "skip" | "again":
            return await _move_groups(gateway, name, TO_END if wanted.what == "skip" else TO_BEGIN, who)
        case "access":
            await gateway.topics.change(name, perm=wanted.perm)
        case "queues":
            await gateway.topics.change(name, read_queues=wanted.read_queues, write_queues=wanted.write_queues)
        case "keep":
            await gateway.topics.change(
                name, retention_ms=wanted.retention_ms or 0, retention_messages=wanted.retention_messages or 0
            )
    return ""


async def _move_groups(gateway: Gateway, name: str, timestamp_ms: int, who: str) -> str:
    """All groups of a topic. Raises NotAllowed when one could not be moved; the others are."""
    groups, failures = await gateway.groups.of_topic(await gateway.topics.get(name))
    if failures:
        raise NotAllowed(joined([failures[0].what, failures[0].reason], ": "))
    told, troubles = [], []
    for group in groups:
        plan = await gateway.groups.plan_reset(group.name, name, timestamp_ms, None)
        if plan.refusal:
            troubles.append(joined([group.name, plan.refusal], ": "))
            continue
        [moved] = await move_all(gateway, [plan], who)
        if moved.trouble:
            troubles.append(joined([group.name, moved.trouble], ": "))
        else:
            told.append(f"{group.name} ({plan.skipped or plan.repeated})")
    if troubles:
        raise NotAllowed(joined([*troubles, *(gettext("%(group)s moved") % {"group": one} for one in told)], "; "))
    return gettext("moved: %(groups)s") % {"groups": joined(told)} if told else gettext("no group has a place in it")


async def _write_down(run: ChangeRun, name: str, dealt: Dealt) -> None:
    action = {"delete": "topic deleted", "skip": "groups moved", "again": "groups moved"}.get(
        run.wanted.what, "topic changed"
    )
    change = Change(
        who=run.asker.who, way=run.asker.way, address=run.asker.address, action=action, target=name,
        details=run.wanted.facts | {"run": run.number}, result=Result.DONE if dealt.is_done else Result.FAILED,
        told=in_english(dealt.told), request_id=run.asker.request_id,
    )  # fmt: skip
    facts = {"event": "topic_changed_in_run", "topic": name, "run": run.number, "username": run.asker.who}
    logger.info(action, extra=facts | {"done": dealt.is_done, "told": dealt.told})
    try:
        await sync_to_async(append)([change])
    except DatabaseError as exc:  # at least here
        logger.error("change not written down", extra=facts | {"event": "audit_not_written", "error": str(exc)})


change_runs = ChangeRuns()
