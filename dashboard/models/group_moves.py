"""Groups that were moved: where each queue was before, for a day, so that a move can be undone."""

from __future__ import annotations

from django.db import models


class GroupMove(models.Model):
    """One move of a group in a topic. places: JSON, [[broker name, queue id, offset before or null], ...]."""

    group = models.CharField(max_length=255, db_index=True)
    topic = models.CharField(max_length=255)
    places = models.TextField()
    who = models.CharField(max_length=160)
    at = models.DateTimeField(db_index=True)
