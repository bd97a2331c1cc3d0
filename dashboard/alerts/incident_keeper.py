"""Writes the incidents of the book to the database, beside the sampler: a locked database holds up no look."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError

from dashboard.alerts.incident_book import Incident, IncidentBook
from dashboard.language.sentences import codes_of
from dashboard.models.incidents import IncidentRow
from dashboard.status.check import Check, Level

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
KEPT = timedelta(days=30)
KEPT_ROWS_MAX = 10_000
FORGET_EACH_S = 3600.0


class IncidentKeeper:
    """`note` takes what the board shows, `run` writes it."""

    def __init__(self) -> None:
        self._book = IncidentBook()
        self._is_adopted = False
        self._forgotten_at = float("-inf")

    def note(self, problems: Iterable[Check], now: float) -> None:
        self._book.note(problems, now)

    async def run(self) -> None:
        """Write until cancelled. What can't be written now is written later: it stays in the book."""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await self.write()
            except DatabaseError as exc:  # the database's own check says it on the page
                logger.debug("incidents not written", extra={"event": "incidents_not_written", "error": str(exc)})
            except Exception:  # a bug here must not stop the watching for good
                logger.exception("writing incidents failed", extra={"event": "sampling_failed"})

    async def write(self) -> None:
        """Write what is due; at first go on with what was open."""
        now = time.time()
        if not self._is_adopted:
            found = [_incident(row) async for row in IncidentRow.objects.filter(ended_at=None)]
            self._book.adopt(found, now)
            self._is_adopted = True
        for incident in self._book.due(now):
            self._book.written(incident, await _write(incident), now)
        if time.monotonic() - self._forgotten_at >= FORGET_EACH_S:
            await _forget(now)
            self._forgotten_at = time.monotonic()


async def _write(incident: Incident) -> int:
    values = {
        "identity": incident.identity[: IncidentRow.TEXT_MAX],
        "level": int(incident.level),
        "title": incident.title[: IncidentRow.TEXT_MAX],
        "evidence": incident.evidence[: IncidentRow.TEXT_MAX],
        "worst": incident.worst[: IncidentRow.TEXT_MAX],
        "words": _words(incident),
        "begun_at": _moment(incident.begun_at),
        "seen_at": _moment(incident.seen_at),
        "ended_at": None if incident.ended_at is None else _moment(incident.ended_at),
    }
    if incident.row is None:
        return (await IncidentRow.objects.acreate(**values)).pk
    await IncidentRow.objects.filter(pk=incident.row).aupdate(**values)
    return incident.row


def _words(incident: Incident) -> str:
    codes = codes_of({"title": incident.title, "evidence": incident.evidence, "worst": incident.worst})
    return json.dumps(codes, ensure_ascii=False, separators=(",", ":"))


async def _forget(now: float) -> None:
    """Drop ended incidents past their time, or beyond the number that is kept."""
    ended = IncidentRow.objects.exclude(ended_at=None)
    await ended.filter(ended_at__lt=_moment(now) - KEPT).adelete()
    beyond = [key async for key in ended.order_by("-begun_at").values_list("pk", flat=True)[KEPT_ROWS_MAX:]]
    for start in range(0, len(beyond), 500):
        await IncidentRow.objects.filter(pk__in=beyond[start : start + 500]).adelete()


def _incident(row: IncidentRow) -> Incident:
    seen_at = row.seen_at.timestamp()
    return Incident(
        row.identity, Level(row.level), row.said("title"), row.said("evidence"), row.said("worst"),
        row.begun_at.timestamp(), seen_at,
        row=row.pk, written_at=seen_at,
    )  # fmt: skip


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
