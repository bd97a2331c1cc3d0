"""A row of what the dashboard samples of slaves."""

from __future__ import annotations

import dataclasses
from typing import Any

from appliance.reports.slave_samples import SlaveSample
from tests.appliance.reports.stores import NOON


def sample(at_ms: int = NOON, slave: str = "broker-a:1", behind_messages: int | None = 3, **others: Any) -> SlaveSample:
    usual = SlaveSample(
        at_ms=at_ms,
        broker="broker-a",
        slave=slave,
        behind_bytes=512,
        behind_messages=behind_messages,
        behind_seconds=0.5,
        in_sync=True,
        bytes_per_second=1024.5,
        seconds=60,
    )
    return dataclasses.replace(usual, **others)
