"""Client ids are shortened to what differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.clients.short_ids import in_two, shortened
from tests.bounded import bounded

HERE = ["10.0.0.7@4711#5ff31dd45d1b", "10.0.0.7@4711#4cd2c81f18c7", "10.0.0.7@4711#4cd2c9000000"]


@pytest.mark.parametrize(
    ("whole", "ids", "parts", "short"),
    [
        (HERE[0], HERE, ("10.0.0.7@4711#", "5ff31dd45d1b"), "…5ff3"),
        (HERE[1], HERE, ("10.0.0.7@4711#", "4cd2c81f18c7"), "…4cd2c8"),
        (HERE[0], [HERE[0], "10.0.0.7@88#5ff31dd45d1b"], ("10.0.0.7@", "4711#5ff31dd45d1b"), "…4711#5ff3"),
        (HERE[0], [HERE[0], "app-1"], ("", HERE[0]), "10.0.0.7@4711#5ff3"),
        (HERE[0], HERE[:1], ("", HERE[0]), "10.0.0.7@4711"),
        ("shop", ["shop", "shop-2"], ("", "shop"), "shop"),
    ],
)
def test_what_differs_is_shown(whole: str, ids: list[str], parts: tuple[str, str], short: str) -> None:
    assert in_two(whole, sorted(ids)) == parts
    assert shortened(whole, sorted(ids)) == short


@bounded(500)
@given(st.lists(st.text("ab1@#.", min_size=1, max_size=12), min_size=1, max_size=8, unique=True))
def test_no_two_look_the_same(ids: list[str]) -> None:
    ids.sort()
    assert all("".join(in_two(one, ids)) == one for one in ids)
    assert len({shortened(one, ids) for one in ids}) == len(ids)
