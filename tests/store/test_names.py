"""The names that the package gives, of which some are loaded when they are first asked for."""

from __future__ import annotations

import pytest

import store
from store.message_store import MessageStore


def test_the_package_gives_every_name_that_it_lists() -> None:
    assert {getattr(store, name).__name__ for name in store.__all__} == set(store.__all__)
    assert store.MessageStore is MessageStore


def test_a_name_that_it_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Shop'"):
        store.Shop  # noqa: B018
