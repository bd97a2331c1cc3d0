"""Dead letters that were put back: a row for each, so that none is put back twice unless a person says so."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class PutBackState(models.TextChoices):
    """How far one came. What was begun and never ended may have been sent."""

    BEGUN = "begun", "Not known"
    SENT = "sent", "Put back"
    FAILED = "failed", "Failed"


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
