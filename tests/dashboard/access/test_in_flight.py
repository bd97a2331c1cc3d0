"""Places for work under way."""

from __future__ import annotations

import pytest

from dashboard.access.in_flight import InFlight, TooManyAtOnce


def test_places_are_bounded_for_one_key_and_in_all() -> None:
    places = InFlight(all_max=3, of_one_max=2)
    places.enter("a")
    places.enter("a")
    with pytest.raises(TooManyAtOnce):
        places.enter("a")
    places.enter("b")
    with pytest.raises(TooManyAtOnce):
        places.enter("c")
    places.leave("a")
    places.enter("c")
    assert len(places) == 3


def test_nothing_is_kept_of_keys_that_left() -> None:
    places = InFlight(all_max=1, of_one_max=1)
    for number in range(3):
        places.enter(str(number))
        places.leave(str(number))
    assert len(places) == 0 and not places._of_key
