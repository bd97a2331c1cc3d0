"""The table of the outbox."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.db import connections, models
from django.utils import timezone


class OutboxState(models.TextChoices):
    """What has become of a message."""

    WAITING = "waiting", "waiting"
    SENT = "sent", "sent"
    FAILED = "failed", "failed: needs an administrator"
    DISCARDED = "discarded", "discarded"


UNSENT = (OutboxState.WAITING, OutboxState.FAILED)  # a later message with the same key waits for these
KEY_CHARS_MAX = 255


def can_lock_rows(alias: str) -> bool:
    """Whether processes can skip the rows of this database that another one has locked."""
    return connections[alias].features.has_select_for_update_skip_locked


class OutboxMessage(models.Model):
    """A message on its way from a transaction to a broker."""

    objects: ClassVar[models.Manager[OutboxMessage]] = models.Manager()

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    state: models.CharField[str, str] = models.CharField(
        max_length=10, choices=OutboxState.choices, default=OutboxState.WAITING
    )
    topic: models.CharField[str, str] = models.CharField(max_length=255)
    sharding_key: models.CharField[str | None, str | None] = models.CharField(
        max_length=KEY_CHARS_MAX, null=True, blank=True
    )  # "" is a key, too
    msg_id: models.CharField[str, str] = models.CharField("message id", max_length=56)
    tags: models.TextField[str, str] = models.TextField(blank=True)
    keys: models.TextField[str, str] = models.TextField(blank=True)
    properties: models.JSONField[Any, Any] = models.JSONField(default=dict, blank=True)
    flag: models.IntegerField[int, int] = models.IntegerField(default=0)
    delay_level: models.SmallIntegerField[int, int] = models.SmallIntegerField(default=0)
    deliver_at: models.FloatField[float | None, float | None] = models.FloatField(
        null=True, blank=True, help_text="seconds since the epoch"
    )
    body: models.BinaryField[bytes, bytes] = models.BinaryField()
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(default=timezone.now)
    next_try_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(default=timezone.now)
    reserved_until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, blank=True, help_text="by a relay whose database can't lock rows"
    )
    tries: models.PositiveIntegerField[int, int] = models.PositiveIntegerField(default=0)
    refusals: models.PositiveIntegerField[int, int] = models.PositiveIntegerField(default=0)
    error: models.TextField[str, str] = models.TextField(blank=True)
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    place: models.CharField[str, str] = models.CharField("stored in", max_length=255, blank=True)

    class Meta:
        verbose_name = "outbox message"
        indexes: ClassVar[list[models.Index]] = [
            models.Index("next_try_at", name="gantrymq_outbox_due", condition=models.Q(state="waiting")),
            models.Index(
                fields=["topic", "sharding_key", "id"],
                name="gantrymq_outbox_key",
                condition=models.Q(state__in=["waiting", "failed"]),
            ),
            models.Index(fields=["state", "ended_at"], name="gantrymq_outbox_state"),
            models.Index(fields=["msg_id"], name="gantrymq_outbox_msg_id"),
        ]

    def __str__(self) -> str:
        return f"{self.msg_id} to {self.topic}: {self.state}"
