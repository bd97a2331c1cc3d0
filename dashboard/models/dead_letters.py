"""Putting dead letters back: the runs that do so, and a row for each letter, so that none is put back twice unless a
person says so.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.models.kept_runs import KeptRun


class PutBackState(models.TextChoices):
    """How far one came. What was begun and never ended may have been sent."""

    BEGUN = "begun", _("Unknown")
    SENT = "sent", _("Resent")
    FAILED = "failed", _("Failed")


class PutBackRun(KeptRun):
    """One run over a group's letters. begin, older: cursors, where it began and where it goes on; older "" at the end.

    since_ms, until_ms: store times that are looked at. wanted: letters counted before, null when nothing was counted.
    told: why it failed.
    """

    TOLD_MAX: ClassVar[int] = 500

    group = models.CharField(max_length=255, db_index=True)
    q = models.TextField(blank=True)
    since_ms = models.BigIntegerField(null=True)
    until_ms = models.BigIntegerField(null=True)
    queue = models.CharField(max_length=300, blank=True)
    to = models.CharField(max_length=8)
    rate = models.PositiveIntegerField()
    is_again = models.BooleanField(default=False)
    begin = models.TextField()
    older = models.TextField(blank=True)
    wanted = models.PositiveIntegerField(null=True)
    scanned = models.PositiveIntegerField(default=0)
    sent = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    unknown = models.PositiveIntegerField(default=0)  # the broker's answer was lost
    before = models.PositiveIntegerField(default=0)  # left alone: put back by an earlier run
    username = models.CharField(max_length=255)
    told = models.CharField(max_length=TOLD_MAX, blank=True)
    started_at = models.DateTimeField(db_index=True)
    changed_at = models.DateTimeField()

    @property
    def dealt_with(self) -> int:
        return self.sent + self.failed + self.unknown + self.before

    @property
    def may_go_on(self) -> bool:
        """Whether something is left of it that it could go on with."""
        return bool(self.older) and self.state in (self.State.STOPPED, self.State.FAILED)


class PutBackRow(models.Model):
    """One letter. letter: group, place and store time, which name it for good, also when its topic is made anew."""

    TEXT_MAX: ClassVar[int] = 500

    letter = models.CharField(max_length=TEXT_MAX, unique=True)
    group = models.CharField(max_length=255, db_index=True)
    place = models.CharField(max_length=255)
    cause = models.CharField(max_length=TEXT_MAX)
    target = models.CharField(max_length=255)
    state = models.CharField(max_length=8, choices=PutBackState.choices)
    told = models.CharField(max_length=TEXT_MAX)  # the new message's id, or why it failed
    username = models.CharField(max_length=255)
    at = models.DateTimeField(db_index=True)
    run = models.ForeignKey(PutBackRun, null=True, on_delete=models.SET_NULL, related_name="letters")
