"""S61: The chain of the audit log: every change of the past shows, and forgetting the oldest leaves it whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.audit import chain
from dashboard.audit.chain import NOTHING_BEFORE, Change, append, check
from dashboard.models.audit import AuditEntry, Result, Way
from tests.dashboard.audit.changes import change


@pytest.mark.django_db
def test_s61_entries_are_numbered_and_chained() -> None:
    append([change("first", details={"keep_for": "7 d", "ä": 1}), change("second")])
    append([change("third")])
    entries = list(AuditEntry.objects.order_by("number"))
    assert [(entry.number, entry.action) for entry in entries] == [(1, "first"), (2, "second"), (3, "third")]
    assert [entry.previous_hash for entry in entries] == [NOTHING_BEFORE, *(one.entry_hash for one in entries[:2])]
    state = check()
    assert (state.count, state.broken_at, state.head) == (3, None, entries[2].entry_hash)


CHANGES: dict[str, Callable[[AuditEntry], object]] = {
    "who": lambda row: setattr(row, "who", "bob"),
    "what": lambda row: setattr(row, "target", "another"),
    "when": lambda row: setattr(row, "at", row.at + timedelta(milliseconds=1)),
    "details": lambda row: setattr(row, "details", "{}"),
    "result": lambda row: setattr(row, "result", Result.REFUSED),
    "hash": lambda row: setattr(row, "entry_hash", "0" * 64),
}


@pytest.mark.django_db
@pytest.mark.parametrize("what", CHANGES)
def test_s61_a_changed_entry_is_found(what: str) -> None:
    append([change(str(number)) for number in range(4)])
    row = AuditEntry.objects.get(number=2)
    CHANGES[what](row)
    row.save()
    assert check().broken_at == 2


@pytest.mark.django_db
def test_s61_an_entry_that_was_taken_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "CHUNK_ROWS", 2)  # the walk goes in steps
    append([change(str(number)) for number in range(6)])
    assert check().count == 6
    AuditEntry.objects.filter(number=4).delete()
    assert check().broken_at == 5


@pytest.mark.django_db
def test_s61_the_oldest_are_forgotten_and_the_rest_is_a_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "FORGET_EACH", 5)
    monkeypatch.setattr(chain, "KEPT_ROWS_MAX", 3)
    old = timezone.now() - chain.KEPT - timedelta(days=1)
    append([change("old", at=old), change("young"), change("young")])
    append([change(str(number)) for number in range(3)])
    assert [entry.number for entry in AuditEntry.objects.order_by("number")] == [4, 5, 6]
    assert check().broken_at is None
    monkeypatch.setattr(chain, "KEPT_ROWS_MAX", 100)
    append([change("old", at=old)] * 4)
    assert AuditEntry.objects.order_by("number").first().number == 4  # type: ignore[union-attr]  # by number, in order


@pytest.mark.django_db
def test_s61_what_is_too_long_is_cut_and_still_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    append([Change(who="x" * 999, way=Way.REST, address="y" * 999, action="z" * 999, target="t" * 999,
                   told="w" * 999, details={"long": "d" * 9999})])  # fmt: skip
    assert check().broken_at is None
    entry = AuditEntry.objects.get()
    assert len(entry.who) == AuditEntry.WHO_MAX and len(entry.details) < 5000


@pytest.mark.django_db
def test_s61_the_log_bears_the_hashes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="dashboard.audit.chain"):
        [entry] = append([change()])
    facts = [vars(record) for record in caplog.records if getattr(record, "event", "") == "audit"]
    assert [(fact["number"], fact["hash"]) for fact in facts] == [(1, entry.entry_hash)]
