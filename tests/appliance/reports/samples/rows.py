"""Rows of what the dashboard samples."""

from __future__ import annotations

import dataclasses
from typing import Any

from appliance.reports.samples.kinds import BrokerSample, GroupSample, SlaveSample
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


def group_sample(at_ms: int = NOON, group: str = "billing", **others: Any) -> GroupSample:
    usual = GroupSample(
        at_ms=at_ms,
        group=group,
        lag=20,
        behind_seconds=2.5,
        members=2,
        consumer_offset=80,
        end_offset=100,
        stored=300,
        consumed=240,
        counted_minutes=1,
        last_consumed_ms=at_ms - 2500,
        looks=12,
    )
    return dataclasses.replace(usual, **others)


def broker_sample(at_ms: int = NOON, broker: str = "broker-a", **others: Any) -> BrokerSample:
    usual = BrokerSample(
        at_ms=at_ms,
        broker=broker,
        in_rate=10.0,
        out_rate=20.0,
        disk_ratio=0.4,
        commit_log_bytes=1 << 30,
        seconds=60,
    )
    return dataclasses.replace(usual, **others)
