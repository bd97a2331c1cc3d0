"""What a view says of a change, as it is kept."""

from __future__ import annotations

from django.http import HttpRequest

from dashboard.audit.notes import note, notes_of


def test_details_lack_what_is_empty_and_the_targets_name_and_nothing_else() -> None:
    request = HttpRequest()
    note(request, "message resent", "orders", {"name": "orders", "to": "orders", "place": "", "key": None, "count": 0})
    note(request, "alert rule changed", "late", {"name": {"before": "slow", "after": "late"}})
    first, second = notes_of(request) or []
    assert first.details == {"to": "orders", "count": 0}
    assert second.details == {"name": {"before": "slow", "after": "late"}}
