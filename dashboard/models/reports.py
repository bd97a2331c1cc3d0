"""Report runs, and the schedule that starts them. Results are files in the data folder; rows say which and how it
went."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

__all__ = ["GroupPromise", "ReportPlan", "ReportRun", "WeeklyMail"]


class ReportRun(models.Model):
    """One run, asked for by a person or by a plan. `run_id` is its folder's name."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Running")
        SUCCEEDED = "succeeded", _("Done")
        INCOMPLETE = "incomplete", _("Done, incomplete")
        FAILED = "failed", _("Failed")
        TIMEOUT = "timeout", _("Took too long")
        CANCELLED = "cancelled", _("Stopped")

    LIVE: ClassVar[tuple[str, ...]] = (State.QUEUED, State.RUNNING)
    WITH_RESULT: ClassVar[tuple[str, ...]] = (State.SUCCEEDED, State.INCOMPLETE)

    run_id = models.CharField(max_length=32, unique=True)
    report = models.CharField(max_length=16, default="traffic")
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    begin_ms = models.BigIntegerField()  # range of store times; the end is exclusive
    end_ms = models.BigIntegerField()
    topics = models.JSONField(default=list)  # names; none: all topics
    zone = models.CharField(max_length=64, default="UTC")  # whose days and months are meant
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )  # null: the schedule, or a command line
    from_shell = models.BooleanField(default=False)  # `gantry report` was run by hand; this row follows its folder
    attempt = models.PositiveSmallIntegerField(default=1)  # of the schedule's runs: one that failed is tried again
    not_before = models.DateTimeField(null=True)  # a later try waits until then
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    rows = models.BigIntegerField(null=True)  # of the result
    result_bytes = models.BigIntegerField(null=True)  # of the result as CSV
    ingested_rows = models.BigIntegerField(null=True)  # messages that this run added to the lake
    error = models.TextField(blank=True)  # of an incomplete run: what is missing

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["state", "created_at"])]

    @property
    def has_result(self) -> bool:
        return self.state in self.WITH_RESULT

    @property
    def is_live(self) -> bool:
        return self.state in self.LIVE

    @property
    def duration_s(self) -> float | None:
        """How long it took; None while it has not ended."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class ReportPlan(models.Model):
    """The due-table: which report runs how often. A plan that is due is claimed by moving `next_run_at` on."""

    report = models.CharField(max_length=16, unique=True)
    interval_minutes = models.PositiveIntegerField(default=60)  # 0: off
    days = models.PositiveIntegerField(default=7)  # how far back each run counts
    cron = models.CharField(max_length=64, blank=True, default="")  # when, instead of each interval
    zone = models.CharField(max_length=64, default="UTC")  # whose clocks cron is about, and whose days runs count
    next_run_at = models.DateTimeField()

    @property
    def is_on(self) -> bool:
        return self.interval_minutes > 0


class GroupPromise(models.Model):
    """How far behind a consumer group may be, in seconds. The one without a name is for all others."""

    group = models.CharField(max_length=255, unique=True, blank=True)
    seconds = models.FloatField()

    class Meta:
        ordering = ["group"]


class WeeklyMail(models.Model):
    """The summary of a week by mail; one row. next_at: null when it is off. runs: ids of those that it waits for."""

    channels = models.ManyToManyField("dashboard.AlertChannel", blank=True)  # of kind mail
    cron = models.CharField(max_length=64, default="0 8 * * mon")
    zone = models.CharField(max_length=64, default="UTC")
    next_at = models.DateTimeField(null=True)
    runs = models.JSONField(default=list)
    begin_ms = models.BigIntegerField(default=0)  # of the week that these runs are about
    end_ms = models.BigIntegerField(default=0)
