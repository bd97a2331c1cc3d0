"""How full the disk is, as far as the tests of upkeep are concerned."""

from __future__ import annotations

import pytest

from store.upkeep import retention


@pytest.fixture
def half_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test says how full the disk is, whatever the machine's is like."""
    monkeypatch.setattr(retention, "disk_ratio", lambda path: 0.5)
