"""The chain: each entry bears the SHA-256 of itself and of the hash before it, so a change of the past shows.

Who can write the database could compute the chain anew, or take entries from its ends. So its newest entry and where it
may begin are kept in a file, too (`outside.py`), and the log of the web process bears the hashes: a copy of that log
elsewhere, or a hash that a person noted, tells whether the chain is still the one that it was.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from dashboard.audit import outside
from dashboard.models.audit import AuditEntry, Result, Way
from dashboard.models.management import BookingTurn

logger = logging.getLogger(__name__)

KEPT = timedelta(days=400)
KEPT_ROWS_MAX = 200_000
FORGET_EACH = 500  # entries
DETAILS_CHARS_MAX = 4000
CHUNK_ROWS = 2000
NOTHING_BEFORE = "0" * 64  # the hash before the first entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change, as it goes into the chain. at: now, if not given."""

    who: str
    way: Way
    address: str
    action: str
    target: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    result: Result = Result.DONE
    told: str = ""
    request_id: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChainState:
    """What a walk along the chain found, and what the record outside the database says.

    broken_at: the number of the first entry that does not fit. missing: first and last number of entries that had been
    written and are gone. recorded_since: the first number that the record covers; None without a readable record.
    """

    count: int
    since: datetime | None
    head: str
    broken_at: int | None
    missing: tuple[tuple[int, int], ...] = ()
    recorded_since: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.broken_at is None and not self.missing and (self.recorded_since is not None or not self.count)


def append(changes: Sequence[Change]) -> list[AuditEntry]:
    """Add entries at the end; all of them or none. Blocking. Raises DatabaseError."""
    if not changes:
        return []
    with transaction.atomic():
        BookingTurn.take()
        last = AuditEntry.objects.order_by("-number").first()
        outside.before_append(last)
        ended, before = (last.number, last.entry_hash) if last is not None else (0, NOTHING_BEFORE)
        made = []
        for number, change in enumerate(changes, start=ended + 1):
            entry = _entry(change, number, before)
            entry.entry_hash = before = hash_of(entry)
            made.append(entry)
        AuditEntry.objects.bulk_create(made)
        if made[-1].number // FORGET_EACH != (made[0].number - 1) // FORGET_EACH:
            _forget(made[-1].number)
        transaction.on_commit(partial(outside.after_commit, made[-1]))
    for entry in made:
        facts = {"event": "audit", "number": entry.number, "hash": entry.entry_hash, "username": entry.who,
                 "way": entry.way, "address": entry.address, "action": entry.action, "target": entry.target,
                 "result": entry.result}  # fmt: skip
        logger.info("audited", extra=facts)
    return made


def hash_of(entry: AuditEntry) -> str:
    """The hash of an entry: over its fields, in this order, and the hash before it."""
    fields = [
        entry.previous_hash, entry.number, round(entry.at.timestamp() * 1000), entry.who, str(entry.way),
        entry.address, entry.action, entry.target, entry.details, str(entry.result), entry.told,
        *([entry.request_id] if entry.request_id else []),  # entries of before had none
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(fields, ensure_ascii=True).encode()).hexdigest()


def check() -> ChainState:
    """Walk along the whole chain, and compare its ends with the record. Blocking: 100 000 entries take seconds."""
    try:
        known = outside.read()  # before the walk: what is written meanwhile is behind it
        walked = _walk()
        after = outside.read()  # behind it: what expired meanwhile was allowed to
    except outside.Unreadable:
        return _walk()
    if known is None or after is None:
        return walked
    found = AuditEntry.objects.order_by("number")
    first, last = found.first(), found.last()
    missing = [(gap.first, gap.last) for gap in after.gaps if gap.last >= after.base]
    begins = first.number if first is not None else known.number + 1
    if begins > after.base:
        missing.append((after.base, begins - 1))
    ends = last.number if last is not None else 0
    if known.number > max(ends, begins - 1):
        missing.append((max(ends, begins - 1) + 1, known.number))
    elif after.base <= known.number and known.number >= begins:
        row = found.filter(number=known.number).first()
        if row is None or row.entry_hash != known.hash:
            missing.append((known.number, known.number))
    return replace(walked, missing=tuple(sorted(set(missing))), recorded_since=after.since)


def _walk() -> ChainState:
    before: AuditEntry | None = None
    count, since = 0, None
    while True:
        further = AuditEntry.objects.order_by("number").filter(number__gt=before.number if before else 0)
        rows = list(further[:CHUNK_ROWS])
        for entry in rows:
            fits = before is None or (entry.previous_hash, entry.number) == (before.entry_hash, before.number + 1)
            if not fits or hash_of(entry) != entry.entry_hash:
                return ChainState(count, since, before.entry_hash if before else "", entry.number)
            since = since or entry.at
            count, before = count + 1, entry
        if len(rows) < CHUNK_ROWS:
            return ChainState(count, since, before.entry_hash if before else "", None)


def _entry(change: Change, number: int, before: str) -> AuditEntry:
    at = change.at or timezone.now()
    details = json.dumps(change.details, ensure_ascii=False, default=str) if change.details else ""
    text_max = AuditEntry.TEXT_MAX
    return AuditEntry(
        number=number,
        at=datetime.fromtimestamp(round(at.timestamp() * 1000) / 1000, UTC),
        who=_text(change.who)[: AuditEntry.WHO_MAX],
        way=change.way,
        address=change.address[:64],
        action=change.action[:100],
        target=_text(change.target)[:text_max],
        details=details if len(details) <= DETAILS_CHARS_MAX else json.dumps({"cut": details[:DETAILS_CHARS_MAX]}),
        result=change.result,
        told=_text(change.told)[:text_max],
        request_id=change.request_id,
        previous_hash=before,
    )


def _text(value: str) -> str:
    """Without character 0: no database may keep another text than the one that was hashed."""
    return value.replace("\0", "\ufffd")


def _forget(number: int) -> None:
    """Drop the oldest entries: past their time, or beyond the number that is kept. What is left is one chain still."""
    keep_from = AuditEntry.objects.filter(at__gte=timezone.now() - KEPT).order_by("number").first()
    first = max(keep_from.number if keep_from is not None else number, number - KEPT_ROWS_MAX + 1)
    going = AuditEntry.objects.filter(number__lt=first)
    if going.exists():
        outside.before_forget(first)
        going.delete()
