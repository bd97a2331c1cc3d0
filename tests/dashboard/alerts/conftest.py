"""What the tests of sending start from: a sender, and leave to send to this machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.alerts.sending.delivery import Sender


@pytest.fixture
def may_send_to_loopback(settings: Any) -> None:
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, alarm_networks="127.0.0.0/8")


@pytest.fixture
def sender() -> Iterator[Sender]:
    made = Sender()
    yield made
    made.close()
