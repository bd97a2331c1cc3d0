"""Which messages of the outbox may be sent now, and by which process.

A message may go when it is due and no earlier one with its topic and key is unsent. So of each key only one process
can choose the first message; it takes those behind it as well. Where the database locks rows, they stay locked while
they are sent, and the others skip them. Elsewhere they are reserved for a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import takewhile

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from gantrymq.contrib.django.models import UNSENT, OutboxMessage, OutboxState, can_lock_rows

Chain = list[OutboxMessage]  # one message, or those of a key in their order


@contextmanager
def chosen(alias: str, batch: int, lease_s: float) -> Iterator[list[Chain]]:
    """What this process may send, so many messages at most, while the block runs.

    Where rows are locked, the block is the transaction that locks them, so what is written of them belongs into it.
    Elsewhere they are this process's for `lease_s`.
    """
    if can_lock_rows(alias):
        with transaction.atomic(using=alias):
            yield _choose(alias, batch)
        return
    with transaction.atomic(using=alias):
        # A write first, of no row: SQLite has one writer, and from here on it is this process.
        OutboxMessage.objects.using(alias).filter(pk=-1).update(tries=0)
        chains = _choose(alias, batch)
        ids = [row.pk for chain in chains for row in chain]
        until = timezone.now() + timedelta(seconds=lease_s)
        OutboxMessage.objects.using(alias).filter(pk__in=ids).update(reserved_until=until)
    yield chains


def _choose(alias: str, batch: int) -> list[Chain]:
    rows = OutboxMessage.objects.using(alias)
    earlier = rows.filter(
        topic=OuterRef("topic"), sharding_key=OuterRef("sharding_key"), id__lt=OuterRef("id"), state__in=UNSENT
    )
    now = timezone.now()
    due = Q(state=OutboxState.WAITING, next_try_at__lte=now) & (Q(reserved_until=None) | Q(reserved_until__lt=now))
    heads = list(_locked(rows.filter(due & ~Exists(earlier)), alias, skip=True).order_by("id")[:batch])
    chains = [[head] for head in heads]
    by_key = {(c[0].topic, c[0].sharding_key): c for c in chains if c[0].sharding_key is not None}
    room = batch - len(heads)
    if room and by_key:
        wanted = Q(pk=-1)
        for (topic, key), chain in by_key.items():
            wanted |= Q(topic=topic, sharding_key=key, id__gt=chain[0].pk)
        behind = _locked(rows.filter(wanted, state__in=UNSENT), alias, skip=False).order_by("id")[:room]
        for row in behind:
            by_key[row.topic, row.sharding_key or ""].append(row)
    return [list(takewhile(lambda row: row.state == OutboxState.WAITING and row.next_try_at <= now, c)) for c in chains]


def _locked(rows: QuerySet[OutboxMessage], alias: str, *, skip: bool) -> QuerySet[OutboxMessage]:
    return rows.select_for_update(skip_locked=skip) if can_lock_rows(alias) else rows
