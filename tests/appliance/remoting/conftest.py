"""The clock of the tests of pacing."""

from __future__ import annotations

import pytest

from appliance.remoting import connection as connection_module
from appliance.remoting import lanes as lanes_module
from tests.appliance.remoting.paced import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (lanes_module, connection_module):
        monkeypatch.setattr(module, "time", clock)
    return clock
