"""Runs (dashboard/kept_runs/runner.py) that change many topics.

Each topic has its row, begun before it is changed and ended, with its line in the audit log, after.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from dashboard.access.permissions import Permission
from dashboard.audit.chain import Change, append
from dashboard.cluster.errors import GatewayError, NotAllowed
from dashboard.cluster.gateway import gateway
from dashboard.kept_runs.runner import KeptRuns
from dashboard.language.sentences import Code, code_of, gettext, in_english, said
from dashboard.limits.names import current
from dashboard.models.audit import Result, Way
from dashboard.models.topic_changes import TopicChangeResult, TopicChangeRun, TopicChangeState
from dashboard.topics.changes import RESETS, TOPICS_MAX, Asker, Dealt, TopicChange, deal

logger = logging.getLogger(__name__)

State = TopicChangeRun.State
RUNS_AT_ONCE = 2
RUNS_KEPT = 50
AT_ONCE = 4  # topics of a run: a dashboard must never be able to hurt a broker
TOLD_MAX = 8_000  # characters kept of what one topic's change told
ACTIONS = {"delete": "topic deleted"} | dict.fromkeys(RESETS, "groups' offsets reset")


@dataclass(frozen=True, slots=True)
class ChangeRun:
    """One run as it is now. dealt: topic → what became of it, in the order in which they were begun."""

    number: int
    wanted: TopicChange
    topics: tuple[str, ...]
    asker: Asker
    state: str
    started_at: datetime
    resumed_at: datetime | None
    stopped_by: str
    told: str
    dealt: dict[str, Dealt] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        return self.state == State.RUNNING

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


class ChangeRuns(KeptRuns[TopicChangeRun]):
    """One a process."""

    model = TopicChangeRun
    name = "bulk change"
    event = "topic_changes"
    permission = Permission.TOPICS_WRITE
    account_lost_it = gettext_noop("The account %(name)s can no longer change topics.")
    at_once = RUNS_AT_ONCE
    ended_field = "ended_at"

    def account(self, row: TopicChangeRun) -> str:
        return row.who

    async def taken_up(self, row: TopicChangeRun) -> None:
        logger.info("change of many topics resumed", extra={"event": "topic_changes_resumed", "run": row.pk})
        await TopicChangeRun.objects.filter(pk=row.pk).aupdate(resumed_at=timezone.now())

    async def work(self, row: TopicChangeRun) -> None:
        await _go_through(row)
        await self.end(row, State.DONE, "")

    async def end(self, row: TopicChangeRun, state: str, told: str) -> None:
        await self.mark(row.pk, state, told=code_of(told))
        failed = await row.results.filter(state=TopicChangeState.FAILED).acount()
        facts = {"event": "topic_changes_ended", "run": row.pk, "topics": len(row.topics), "failed": failed}
        logger.info("change of many topics ended", extra=facts | {"username": row.who, "reason": in_english(told)})

    async def start(self, wanted: TopicChange, topics: Sequence[str], asker: Asker) -> ChangeRun:
        """Begin, with the names that the running account may touch. Raises NotAllowed."""
        names = list(dict.fromkeys(topics))
        if not names or len(names) > TOPICS_MAX:
            raise NotAllowed(gettext("Choose 1 to %(topics_max)s topics.") % {"topics_max": TOPICS_MAX})
        for name in names:
            if not current().allows(name):
                raise current().refusal()
        if await TopicChangeRun.objects.filter(state=State.RUNNING).acount() >= RUNS_AT_ONCE:
            raise NotAllowed(
                gettext("%(runs_at_once)s changes of many topics are running already. Wait for one, or stop it.")
                % {"runs_at_once": RUNS_AT_ONCE}
            )
        row = await TopicChangeRun.objects.acreate(
            wanted=asdict(wanted), topics=names, started_at=timezone.now(), **asdict(asker)
        )
        self.begin(row)
        await _forget_old()
        return _run_of(row, [])


async def found(number: int) -> ChangeRun:
    """Raises RunNotFound, also for a run with names beyond the account's."""
    row = await TopicChangeRun.objects.filter(pk=number).afirst()
    if row is None or not all(map(current().allows, row.topics)):
        raise RunNotFound(gettext("There is no run %(number)s.") % {"number": number})
    return _run_of(row, [result async for result in row.results.order_by("pk")])


async def newest() -> list[ChangeRun]:
    """The newest first."""
    may = current().allows
    rows = TopicChangeRun.objects.order_by("-pk").prefetch_related("results")
    return [
        _run_of(row, sorted(row.results.all(), key=lambda result: result.pk))
        async for row in rows.aiterator(RUNS_KEPT)
        if all(map(may, row.topics))
    ]


async def stop(number: int, username: str) -> ChangeRun:
    """It begins with no further topic. Raises RunNotFound, NotAllowed."""
    await found(number)
    await ChangeRuns.stop(number, username)
    return await found(number)


class RunNotFound(GatewayError):
    """No such run, or it is forgotten."""

    status = 404
    advice = gettext_noop("The newest 50 runs are kept. The audit log has every topic's result.")


def _run_of(row: TopicChangeRun, results: Sequence[TopicChangeResult]) -> ChangeRun:
    dealt = {
        result.topic: Dealt(result.state == TopicChangeState.DONE, said(result.told))
        for result in results
        if result.state != TopicChangeState.BEGUN
    }
    asker = Asker(row.who, Way(row.way), row.address, row.request_id)
    return ChangeRun(
        row.pk, TopicChange(**row.wanted), tuple(row.topics), asker, row.state, row.started_at, row.resumed_at,
        row.stopped_by, said(row.told), dealt,
    )  # fmt: skip


async def _go_through(row: TopicChangeRun) -> None:
    """Deal with what is left, until a person stops it. Raises DatabaseError."""
    begun = {result.topic: result.state async for result in row.results.all()}
    waiting = iter([name for name in row.topics if begun.get(name, TopicChangeState.BEGUN) == TopicChangeState.BEGUN])
    wanted = TopicChange(**row.wanted)

    async def worker() -> None:
        for name in waiting:
            if not await TopicChangeRun.objects.filter(pk=row.pk, state=State.RUNNING).aexists():
                return
            if name not in begun:
                await TopicChangeResult.objects.acreate(run=row, topic=name, state=TopicChangeState.BEGUN)
            dealt = await deal(gateway(), wanted, name, row.who, was_begun=name in begun)
            await sync_to_async(_write_down)(row, name, dealt)

    ends = await asyncio.gather(*(worker() for _ in range(AT_ONCE)), return_exceptions=True)
    for end in ends:
        if end is not None:
            raise end


def _write_down(row: TopicChangeRun, name: str, dealt: Dealt) -> None:
    """The result, and its line in the audit log: both or none."""
    wanted = TopicChange(**row.wanted)
    action = ACTIONS.get(wanted.what, "topic changed")
    change = Change(
        who=row.who, way=Way(row.way), address=row.address, action=action, target=name,
        details=wanted.facts | {"run": row.pk}, result=Result.DONE if dealt.is_done else Result.FAILED,
        told=in_english(dealt.told), request_id=row.request_id,
    )  # fmt: skip
    facts = {"event": "topic_changed_in_run", "topic": name, "run": row.pk, "username": row.who}
    logger.info(action, extra=facts | {"done": dealt.is_done, "told": change.told})
    with transaction.atomic():
        TopicChangeResult.objects.filter(run=row, topic=name).update(
            state=TopicChangeState.DONE if dealt.is_done else TopicChangeState.FAILED,
            told=_kept(dealt.told),
        )
        append([change])


def _kept(told: str) -> Code:
    """What was told, for every language; what is very long, of hundreds of groups say, in English and cut."""
    code = code_of(told)
    return code if len(json.dumps(code)) <= TOLD_MAX else in_english(told)[:TOLD_MAX]


async def _forget_old() -> None:
    """Those beyond the newest that have ended."""
    numbers = [number async for number in TopicChangeRun.objects.order_by("-pk").values_list("pk", flat=True)]
    old = TopicChangeRun.objects.filter(pk__in=numbers[RUNS_KEPT:])
    await old.exclude(state=State.RUNNING).adelete()


change_runs = ChangeRuns()
