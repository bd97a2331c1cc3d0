"""History: blocks of values, and marks on the time axis."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class HistoryBlock(models.Model):
    """Values of one series in a row: 60 seconds of a minute, 60 minutes of an hour, or 24 hours of a day.

    start: epoch seconds, a multiple of the block's length. values: 32-bit floats, little-endian; NaN is not known.
    """

    SERIES_MAX: ClassVar[int] = 300

    series = models.CharField(max_length=SERIES_MAX)
    step_s = models.PositiveIntegerField()
    start = models.PositiveBigIntegerField()
    values = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["series", "step_s", "start"], name="history_block_once")]
        indexes = [models.Index(fields=["step_s", "start"])]


class HistoryMark(models.Model):
    """A moment that explains a chart: a restart."""

    TEXT_MAX: ClassVar[int] = 200

    at = models.DateTimeField(db_index=True)
    text = models.CharField(max_length=TEXT_MAX)
