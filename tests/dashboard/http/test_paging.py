"""dashboard/http/paging.py: which rows a page of a list has."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from dashboard.http.paging import page_of


@pytest.mark.parametrize(
    ("asked", "number", "rows"),
    [
        ("", 1, [0, 1, 2]), ("?page=2", 2, [3, 4, 5]), ("?page=3", 3, [6]), ("?page=4", 3, [6]),
        ("?page=0", 1, [0, 1, 2]), ("?page=-1", 1, [0, 1, 2]), ("?page=two", 1, [0, 1, 2]), ("?page=99999", 3, [6]),
        ("?page=100000", 1, [0, 1, 2]),
    ],
)  # fmt: skip
def test_the_address_names_a_page_and_the_nearest_one_is_shown(asked: str, number: int, rows: list[int]) -> None:
    page = page_of(RequestFactory().get(f"/topics{asked}"), range(7), 3)
    assert (page.number, page.pages, list(page.rows)) == (number, 3, rows)


def test_an_empty_list_has_one_page() -> None:
    page = page_of(RequestFactory().get("/topics?page=5"), [], 3)
    assert (page.number, page.pages, page.rows) == (1, 1, [])
