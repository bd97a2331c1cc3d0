"""What a member makes of two views that it received one after the other."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from appliance.failover.view import Figures, Switch, View, following

FIRST = View(7, received=10.0, changed=0.0, term_revision=3, beat_revision=5)


def test_the_first_view_counts_as_changed_when_it_was_received() -> None:
    assert following(None, FIRST).changed == 10.0


def test_a_view_that_says_the_same_changed_when_the_first_that_said_so_was_received() -> None:
    figures = Figures("h:1", "boot", 1, 100, 100, is_healthy=True)
    again = dataclasses.replace(FIRST, received=12.0, members={1: figures})  # which is advisory
    assert following(following(None, FIRST), again).changed == 10.0


@pytest.mark.parametrize("field", ["cluster_id", "term_revision", "beat_revision"])
def test_a_view_with_another_term_or_beat_changed_when_it_was_received(field: str) -> None:
    changes: dict[str, Any] = {field: 8}
    other = dataclasses.replace(FIRST, received=12.0, **changes)
    assert following(following(None, FIRST), other).changed == 12.0


SWITCH = Switch("one", 2, False, 0, 1, 3, 5)


def received(sent: float, switch: Switch | None) -> View:
    return dataclasses.replace(FIRST, sent=sent, received=sent + 0.1, switch=switch)


def test_a_switch_came_after_the_last_look_that_did_not_find_it() -> None:
    view = following(None, received(9.0, None))
    for sent in (10.0, 20.0):
        view = following(view, received(sent, SWITCH))
        assert view.switch_after == 9.0
    assert following(view, received(30.0, SWITCH._replace(id="two"))).switch_after == 20.0


def test_when_a_switch_came_is_not_known_to_who_finds_it_at_the_first_look() -> None:
    view = following(following(None, received(9.0, SWITCH)), received(10.0, SWITCH))
    assert view.switch_after is None
