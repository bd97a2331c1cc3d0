"""Where a problem leads: the page about the thing, for names that an address takes."""

from __future__ import annotations

from django.urls import NoReverseMatch, reverse


def page_of(page: str, name: str, others: str) -> str:
    """others: the list, for a name that some other client made up."""
    try:
        return reverse(page, args=[name])
    except NoReverseMatch:
        return reverse(others)
