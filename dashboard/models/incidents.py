"""Incidents: a row for each problem that the Overview showed for more than a moment."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from dashboard.models.words import RowWithWords
from dashboard.status.check import Level


class IncidentQuery(models.QuerySet["IncidentRow"]):
    """Rows in the order of the list."""

    def newest_first(self) -> IncidentQuery:
        """The open ones first, then by when they began."""
        return self.order_by(models.F("ended_at").desc(nulls_first=True), "-begun_at", "-pk")


class IncidentRow(RowWithWords):
    """One incident. level, title and worst are of its worst moment."""

    TEXT_MAX: ClassVar[int] = 500

    identity = models.CharField(max_length=TEXT_MAX)
    level = models.PositiveSmallIntegerField()
    title = models.CharField(max_length=TEXT_MAX)
    evidence = models.CharField(max_length=TEXT_MAX)  # when it began
    worst = models.CharField(max_length=TEXT_MAX)
    begun_at = models.DateTimeField(db_index=True)
    seen_at = models.DateTimeField()  # the last time that is sure, for a process that was killed
    ended_at = models.DateTimeField(null=True, db_index=True)

    objects = IncidentQuery.as_manager()

    @property
    def texts(self) -> dict[str, str]:
        """title, evidence and worst for a page."""
        return {field: self.said(field) for field in ("title", "evidence", "worst")}

    @property
    def word(self) -> str:
        return Level(self.level).word

    @property
    def duration_s(self) -> float:
        """How long it lasted, or lasts by now: an open row belongs to the process that is asked."""
        return ((self.ended_at or timezone.now()) - self.begun_at).total_seconds()
