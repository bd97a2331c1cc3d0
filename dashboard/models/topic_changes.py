"""Changes of many topics: a run, and a row for each topic that was begun, so that a restart loses none of them."""

from __future__ import annotations

from django.db import models

from dashboard.models.audit import Way
from dashboard.models.kept_runs import KeptRun


class TopicChangeState(models.TextChoices):
    """How far one came. What was begun and never ended may have been done."""

    BEGUN = "begun", "Begun"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class TopicChangeRun(KeptRun):
    """One run. wanted: the values of a TopicChange; topics: all names, in the order in which they are dealt with.

    who, way, address, request_id: who asked, for the audit log. resumed_at: when a web process went on with it that had
    not begun it. told: why it failed, as a code of dashboard/language/sentences.py.
    """

    wanted = models.JSONField()
    topics = models.JSONField()
    who = models.CharField(max_length=255)
    way = models.CharField(max_length=10, choices=Way.choices)
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    told = models.JSONField(default=str)
    started_at = models.DateTimeField()
    resumed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)


class TopicChangeResult(models.Model):
    """One topic of a run. told: more about it, or why it failed, as a code."""

    run = models.ForeignKey(TopicChangeRun, on_delete=models.CASCADE, related_name="results")
    topic = models.CharField(max_length=255)
    state = models.CharField(max_length=8, choices=TopicChangeState.choices)
    told = models.JSONField(default=str)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "topic"), name="topic_once_a_run"),)
