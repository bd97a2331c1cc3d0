"""S61: What is taken from the ends of the audit log is told, as a record outside the database knows of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from dashboard.audit import chain, outside
from dashboard.audit.chain import append, check
from dashboard.models.audit import AuditEntry
from tests.dashboard.audit.changes import change
from tests.dashboard.conftest import Client

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def six() -> None:
    for number in range(6):
        append([change(str(number))])
    state = check()
    assert state.is_whole and (state.count, state.recorded_since) == (6, 1)


@pytest.mark.usefixtures("six")
@pytest.mark.parametrize(
    ("gone", "missing"),
    [({"number": 6}, (6, 6)), ({"number__gte": 3}, (3, 6)), ({"number__lte": 2}, (1, 2)), ({}, (1, 6))],
)
def test_s61_entries_that_are_deleted_at_an_end_are_told(gone: dict[str, int], missing: tuple[int, int]) -> None:
    AuditEntry.objects.filter(**gone).delete()
    state = check()
    assert not state.is_whole and (state.broken_at, state.missing) == (None, (missing,))


@pytest.mark.usefixtures("six")
def test_s61_a_copy_of_before_stays_told_when_entries_follow() -> None:
    AuditEntry.objects.filter(number__gte=5).delete()
    append([change("after")])
    append([change("after"), change("and one more")])
    state = check()
    assert (state.broken_at, state.missing, state.is_whole) == (None, ((5, 6),), False)


@pytest.mark.usefixtures("six")
def test_s61_an_end_that_was_computed_anew_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    AuditEntry.objects.filter(number=6).delete()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(outside, "before_append", lambda last: None)
        elsewhere.setattr(outside, "after_commit", lambda entry: None)
        append([change("forged")])
    assert check().missing == ((6, 6),)
    append([change("after")])
    assert check().missing == ((6, 6),)


def test_s61_entries_that_expire_are_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "FORGET_EACH", 5)
    old = timezone.now() - chain.KEPT - timedelta(days=1)
    append([change("old", at=old)] * 3)
    append([change("young")] * 4)
    assert AuditEntry.objects.count() == 4
    assert check().is_whole
    AuditEntry.objects.filter(number=4).delete()
    assert check().missing == ((4, 4),)


@pytest.mark.usefixtures("six")
def test_s61_a_kill_between_commit_and_file_is_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(outside, "after_commit", lambda entry: None)
        append([change("the file lags")])
        append([change("by two")])
    assert check().is_whole
    append([change("after")])
    assert check().is_whole


@pytest.mark.usefixtures("six")
def test_s61_a_kill_between_file_and_expiry_is_no_gap() -> None:
    outside.before_forget(4)  # and the transaction that deletes is lost
    assert check().is_whole
    append([change("after")])
    assert check().is_whole


@pytest.mark.usefixtures("six")
def test_s61_what_was_rolled_back_is_not_recorded() -> None:
    def fails() -> None:
        with transaction.atomic():
            append([change("rolled back")])
            raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert check().is_whole


@pytest.mark.usefixtures("six")
@pytest.mark.parametrize("text", [None, "", "{}", "[1]", '{"number": "x"}'])
def test_s61_without_its_record_the_log_is_not_called_whole(text: str | None) -> None:
    outside.path().unlink() if text is None else outside.path().write_text(text)
    state = check()
    assert not state.is_whole and state.recorded_since is None and state.broken_at is None
    append([change("after")])
    assert check().recorded_since == 7


async def test_s61_the_page_and_rest_say_it(log_in: Client) -> None:
    client = await log_in("admin")
    await sync_to_async(append)([change(str(number)) for number in range(6)])
    assert "The chain is intact" in (await client.get("/audit?check=1")).content.decode()
    await AuditEntry.objects.filter(number__gte=5).adelete()
    assert "Entries are missing" in (await client.get("/audit?check=1")).content.decode()
