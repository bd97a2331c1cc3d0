"""The audit log: a row for each change, and how far the trails of brokers and name servers are read."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class Way(models.TextChoices):
    """How a change came in."""

    PAGE = "page", _("Page")
    REST = "rest", _("REST")
    COMMAND = "command", _("Command line")
    REMOTING = "remoting", _("Remoting")


class Result(models.TextChoices):
    """What came of it."""

    DONE = "done", _("Done")
    REFUSED = "refused", _("Refused")
    FAILED = "failed", _("Failed")


class AuditEntry(models.Model):
    """One change. previous_hash, entry_hash: see dashboard/audit/chain.py. number: without a gap, from 1.

    details: JSON; a value that changed is {"before": …, "after": …}. request_id: "" for what no request did.
    """

    WHO_MAX: ClassVar[int] = 160
    TEXT_MAX: ClassVar[int] = 300

    number = models.PositiveBigIntegerField(unique=True)
    at = models.DateTimeField(db_index=True)  # whole milliseconds
    who = models.CharField(max_length=WHO_MAX, blank=True)  # "" without an account
    way = models.CharField(max_length=8, choices=Way.choices)
    address = models.CharField(max_length=64, blank=True)
    action = models.CharField(max_length=100)
    target = models.CharField(max_length=TEXT_MAX, blank=True)
    details = models.TextField(blank=True)  # JSON
    result = models.CharField(max_length=8, choices=Result.choices)
    told = models.CharField(max_length=TEXT_MAX, blank=True)  # why it was refused, or failed
    request_id = models.CharField(max_length=64, blank=True, default="")
    previous_hash = models.CharField(max_length=64)
    entry_hash = models.CharField(max_length=64)

    class Meta:
        ordering: ClassVar[list[str]] = ["-number"]

    def facts(self) -> list[tuple[str, str]]:
        """The details for reading: names and values."""
        known = json.loads(self.details) if self.details else {}
        return [(key, _shown(value)) for key, value in known.items()]


def _shown(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"before", "after"}:
        return f"{_shown(value['before'])} → {_shown(value['after'])}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class TrailPosition(models.Model):
    """Up to where the trail of one process is in the log."""

    path = models.CharField(max_length=500, unique=True)
    part = models.CharField(max_length=32, blank=True)  # what its first line says
    offset = models.PositiveBigIntegerField()
