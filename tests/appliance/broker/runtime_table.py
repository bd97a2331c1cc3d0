"""The table of 28, told by a broker that serves."""

from __future__ import annotations

from appliance.broker.controller import BrokerController
from appliance.broker.status.runtime_info import runtime_info


def runtime_table(broker: BrokerController, *, now_s: float | None = None) -> dict[str, str]:
    return runtime_info(broker, now_s=now_s)
