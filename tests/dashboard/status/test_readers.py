"""Which groups read a topic, and which is furthest behind."""

from __future__ import annotations

from dashboard.cluster.group_values import GroupPlace
from dashboard.status.board import WatchedGroup
from dashboard.status.readers import readers_of


def group(name: str, at: float, *places: GroupPlace) -> WatchedGroup:
    return WatchedGroup(name, None, None, 1, at, places=places)


def test_the_worst_lag_is_over_all_brokers_of_one_group() -> None:
    near = group("near", 5.0, GroupPlace("orders", "a", 0, 9, 100), GroupPlace("mail", "a", 0, 0, None))
    far = group("far", 3.0, GroupPlace("orders", "a", 0, 6, 700), GroupPlace("orders", "b", 0, 7, 200))
    found = readers_of([near, far])
    assert (found["orders"].groups, found["orders"].lag, found["orders"].lag_ms) == (2, 13, 700)
    assert (found["orders"].group, found["orders"].at) == ("far", 3.0)
    assert (found["mail"].groups, found["mail"].lag, found["mail"].group) == (1, 0, "near")
    assert "other" not in found
