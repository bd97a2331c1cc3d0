"""Removing sent and discarded messages from the outbox, so that its table stays bounded."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from gantrymq.contrib.django.models import OutboxMessage, OutboxState
from gantrymq.contrib.django.settings import OutboxSettings

STEP_ROWS = 1000  # removed in one transaction
ENDED = (OutboxState.SENT, OutboxState.DISCARDED)


def clean(alias: str, own: OutboxSettings) -> int:
    """Remove what ended more than `keep_sent_s` ago, and of the rest all but the latest `keep_sent_rows`. Unsent
    messages stay. Several processes may do so at once. Returns how many rows are gone."""
    ended = OutboxMessage.objects.using(alias).filter(state__in=ENDED)
    old = Q(ended_at__lt=timezone.now() - timedelta(seconds=own.keep_sent_s))
    beyond = ended.order_by("-ended_at").values_list("ended_at", flat=True)[own.keep_sent_rows : own.keep_sent_rows + 1]
    for first_too_many in beyond:
        old |= Q(ended_at__lte=first_too_many)
    gone = 0
    while ids := list(ended.filter(old).values_list("pk", flat=True)[:STEP_ROWS]):
        gone += OutboxMessage.objects.using(alias).filter(pk__in=ids, state__in=ENDED).delete()[0]
    return gone
