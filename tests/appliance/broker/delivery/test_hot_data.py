"""appliance/broker/delivery/hot_data.py: how far back memory reaches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from appliance.broker.delivery import hot_data
from store import MessageStore


@pytest.mark.parametrize(("physical_offset", "is_hot"), [(1000, True), (600, True), (599, False)])
def test_what_lies_as_far_back_as_memory_reaches_is_hot(
    monkeypatch: pytest.MonkeyPatch, physical_offset: int, is_hot: bool
) -> None:
    monkeypatch.setattr(hot_data, "hot_bytes", lambda config: 400)
    store = cast(MessageStore, SimpleNamespace(config=None, max_physical_offset=1000))
    assert hot_data.is_hot(store, physical_offset) is is_hot
