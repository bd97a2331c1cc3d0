"""How long messages took from sent to handled: a histogram for each topic and group."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class LatencyBlock(models.Model):
    """Of the seconds from `start` on (epoch), `step_s` of them. counts: as dashboard/latency/histogram.py packs them.

    Without a topic, and without a group, it has what was not measured: see dashboard/latency/book.py.
    """

    NAME_MAX: ClassVar[int] = 255

    topic = models.CharField(max_length=NAME_MAX)
    group = models.CharField(max_length=NAME_MAX)
    step_s = models.PositiveIntegerField()
    start = models.PositiveBigIntegerField()
    counts = models.BinaryField()
    unmeasured = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["topic", "group", "step_s", "start"], name="latency_block_once")]
        indexes = [
            models.Index(fields=["group", "start"], name="latency_block_group"),
            models.Index(fields=["step_s", "start"], name="latency_block_step"),
        ]
