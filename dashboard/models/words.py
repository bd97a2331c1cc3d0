"""Rows that keep how their texts were made, so that each reader gets them in the language of the page."""

from __future__ import annotations

import json

from django.db import models

from dashboard.language.sentences import said


class RowWithWords(models.Model):
    """words: JSON, the codes of texts by field (dashboard/language/sentences.py); "" in rows of earlier versions."""

    words = models.TextField(blank=True, default="")

    class Meta:
        abstract = True

    def said(self, field: str) -> str:
        """A text of the row in the language that is active; as it was written where nothing else is known."""
        known = json.loads(self.words) if self.words else {}
        return said(known[field]) if field in known else str(getattr(self, field))
