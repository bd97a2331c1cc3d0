"""Searches of messages that an account keeps."""

from __future__ import annotations

from django.db import models

from dashboard.models.management import User


class SavedSearch(models.Model):
    """One search of a topic. query: as in the page's address."""

    NAME_MAX = 60
    QUERY_MAX = 4000
    A_TOPIC_MAX = 20  # of one account's

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_searches")
    topic = models.CharField(max_length=255)
    name = models.CharField(max_length=NAME_MAX)
    query = models.CharField(max_length=QUERY_MAX)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "topic", "name"), name="saved_search_once"),)
