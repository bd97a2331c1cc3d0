"""What REST tells of a broker's drain, and takes to start one."""

from __future__ import annotations

from typing import Literal

from ninja import Field, Schema

from appliance.draining.steps import ROUTES_S
from dashboard.brokers.draining import Draining
from dashboard.rest.values import Given


class DrainOut(Schema):
    """phase: off, it accepts messages; routes, producers are leaving; groups, it rejects messages and groups have some
    left; drained. groups, absent_groups: messages left, of groups with members and without. slaves: bytes that each
    connected one lacks."""

    broker: str
    phase: Literal["off", "routes", "groups", "drained"]
    is_only_master: bool
    connections: int | None
    groups: dict[str, int]
    absent_groups: dict[str, int]
    pending: dict[str, int]
    slaves: dict[str, int]

    @classmethod
    def of(cls, now: Draining) -> DrainOut:
        left = now.left
        return cls(
            broker=now.broker, phase=now.phase.value, is_only_master=now.is_only_master, connections=left.connections,
            groups=dict(left.groups), absent_groups=dict(left.absent), pending=dict(left.pending),
            slaves=dict(left.slaves),
        )  # fmt: skip


class DrainIn(Given):
    """routes_s: how long clients take to renew their routes; then the broker rejects messages."""

    routes_s: int = Field(int(ROUTES_S), ge=0, le=600)
