"""Runs (dashboard/kept_runs/runner.py) that put dead letters back.

A run is a chain of the steps of put_back.py. After each step the record has its cursor and its counts.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from dashboard.access.permissions import Permission
from dashboard.cluster.browse import write_cursor
from dashboard.cluster.errors import GatewayError, GroupNotFound, NotAllowed
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_query import understand
from dashboard.cluster.message_scan import TimeSpan
from dashboard.cluster.message_search import Search
from dashboard.dead_letters import letters
from dashboard.dead_letters.put_back import PutBackStep, Wish, put_backs
from dashboard.kept_runs.runner import KeptRuns
from dashboard.language.sentences import in_english
from dashboard.limits.names import NameRefused
from dashboard.models import PutBackRow, PutBackRun

logger = logging.getLogger(__name__)

State = PutBackRun.State
RUNS_AT_ONCE = 3
WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # before a step is tried again; then the run has failed
KEPT = timedelta(days=90)
ROWS_MAX = 200_000
RUNS_MAX = 1_000
FORGET_EACH_S = 3600.0
SLICE = 5_000  # rows deleted at once


class PutBackRuns(KeptRuns[PutBackRun]):
    """Besides, it drops what is too old."""

    model = PutBackRun
    name = "resend run"
    event = "put_back"
    permission = Permission.MESSAGES_SEND
    account_lost_it = gettext_noop("The account %(name)s can no longer resend dead letters.")
    at_once = RUNS_AT_ONCE
    ended_field = "changed_at"

    def __init__(self) -> None:
        super().__init__()
        self._forgotten_at = float("-inf")

    async def look(self) -> None:
        await super().look()
        if time.monotonic() - self._forgotten_at >= FORGET_EACH_S:
            await forget_old()
            self._forgotten_at = time.monotonic()

    def account(self, row: PutBackRun) -> str:
        return row.username

    async def work(self, row: PutBackRun) -> None:
        await work(row)

    async def end(self, row: PutBackRun, state: str, told: str) -> None:
        await _end(row, state, told)


async def start(group: str, wish: Wish, *, older: str, wanted: int | None, username: str) -> PutBackRun:
    """A new run, from the cursor on, or from the newest letter of now. Raises NotAllowed, GroupNotFound."""
    detail = await letters.detail_of(gateway(), group)
    if await PutBackRun.objects.filter(group=group, state=State.RUNNING).aexists():
        raise NotAllowed(gettext("Messages of %(group)s are being resent already.") % {"group": group})
    begin = older or write_cursor({queue.key: queue.max_offset for queue in detail.queues})
    now, search = timezone.now(), wish.wanted
    row = await PutBackRun.objects.acreate(
        group=group, q=search.query.text, since_ms=search.span.since_ms, until_ms=search.span.until_ms,
        queue=search.queue or "", to=wish.to, rate=wish.rate, is_again=wish.is_again, begin=begin, older=begin,
        wanted=wanted, username=username, started_at=now, changed_at=now,
    )  # fmt: skip
    PutBackRuns.tell()
    return row


async def stop(group: str, number: int, username: str) -> PutBackRun:
    """It ends after the step that it is in. Raises NotAllowed when it has ended."""
    await found(group, number)
    await PutBackRuns.stop(number, username)
    return await found(group, number)


async def go_on(group: str, number: int, username: str) -> PutBackRun:
    """A run that was stopped or failed goes on where it was, for this account now. Raises NotAllowed."""
    row = await found(group, number)
    if await PutBackRun.objects.filter(group=group, state=State.RUNNING).aexists():
        raise NotAllowed(gettext("Messages of %(group)s are being resent already.") % {"group": group})
    if not row.may_go_on:
        raise NotAllowed(gettext("Nothing is left of it."))
    ended = PutBackRun.objects.filter(pk=number, state=row.state)
    now = timezone.now()
    if not await ended.aupdate(state=State.RUNNING, username=username, stopped_by="", told="", changed_at=now):
        raise NotAllowed(gettext("Another user has resumed it already."))
    PutBackRuns.tell()
    return await found(group, number)


async def found(group: str, number: int) -> PutBackRun:
    """The run. Raises RunNotFound."""
    row = await PutBackRun.objects.filter(group=group, pk=number).afirst()
    if row is None:
        raise RunNotFound(gettext("%(group)s has no run %(number)s.") % {"group": group, "number": number})
    return row


class RunNotFound(GatewayError):
    """No such run, or it is forgotten."""

    status = 404
    advice = gettext_noop("Runs are kept for 90 days.")


async def work(row: PutBackRun) -> None:
    """Take steps until the run's end; the record says what became of it. Raises DatabaseError."""
    failures = 0
    while row.is_running:
        try:
            detail = await letters.detail_of(gateway(), row.group)
            step = await put_backs.step(
                gateway(), row.group, detail, wish_of(row), older=row.older, username=row.username
            )
        except GroupNotFound:
            await _end(row, State.FAILED, gettext("The messages are gone: they have expired, or were discarded."))
            return
        except NameRefused as exc:
            await _end(row, State.FAILED, str(exc))
            return
        except GatewayError as exc:
            trouble = str(exc)
        else:
            await _note(row, step)
            trouble = next(iter(step.troubles), "")
            failures = 0 if step.scanned else failures
        if trouble:
            if failures == len(WAITS_S):
                await _end(row, State.FAILED, trouble)
                return
            await asyncio.sleep(WAITS_S[failures])
            failures += 1
        elif not row.older:
            await _end(row, State.DONE, "")
            return
        await row.arefresh_from_db(fields=["state"])


def wish_of(row: PutBackRun) -> Wish:
    """What the record says is to be put back."""
    search = Search(understand(row.q), TimeSpan(row.since_ms, row.until_ms), row.queue or None)
    return Wish(search, row.to, row.rate, row.is_again, run=row.pk)


def facts_of(run: PutBackRun) -> dict[str, Any]:
    """What the audit log keeps of a run."""
    return {"run": run.pk, "chosen": run.q, "to": run.to, "rate": run.rate, "wanted": run.wanted, "sent": run.sent}


async def forget_old() -> None:
    """Letters that were put back long ago, or that are too many, and runs likewise; what is running stays."""
    since = timezone.now() - KEPT
    while await _delete(PutBackRow.objects.filter(at__lt=since).order_by("at")):
        pass
    while await _delete(PutBackRow.objects.order_by("-at", "-pk"), ROWS_MAX):
        pass
    ended = PutBackRun.objects.exclude(state=State.RUNNING)
    await ended.filter(changed_at__lt=since).adelete()
    await _delete(ended.order_by("-started_at", "-pk"), RUNS_MAX)


async def _delete(rows: QuerySet[Any], first: int = 0) -> int:
    """Some rows of a query, from the given one on; how many."""
    numbers = [number async for number in rows.values_list("pk", flat=True)[first : first + SLICE]]
    if numbers:
        await rows.model.objects.filter(pk__in=numbers).adelete()
    return len(numbers)


async def _note(row: PutBackRun, step: PutBackStep) -> None:
    """What a step did: counts are added, so that who stops it meanwhile loses nothing."""
    row.older = step.older or ""
    await PutBackRun.objects.filter(pk=row.pk).aupdate(
        older=row.older, changed_at=timezone.now(), scanned=F("scanned") + step.scanned,
        sent=F("sent") + step.count("sent"), failed=F("failed") + step.count("failed"),
        unknown=F("unknown") + step.count("begun"), before=F("before") + step.count("before"),
    )  # fmt: skip


async def _end(row: PutBackRun, state: str, told: str) -> None:
    """It has ended, unless a person stopped it in the same moment with something left to do."""
    if state == State.DONE:
        running = PutBackRun.objects.filter(pk=row.pk)
    else:
        running = PutBackRun.objects.filter(pk=row.pk, state=State.RUNNING)
    await running.aupdate(state=state, told=in_english(told)[: PutBackRun.TOLD_MAX], changed_at=timezone.now())
    facts = {"event": "put_back_run_ended", "group": row.group, "run": row.pk, "state": str(state), "reason": told}
    logger.info("resend run ended", extra=facts)
