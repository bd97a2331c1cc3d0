"""Two hundred open tabs of three accounts: each gets what happens, which is read, made and written once for all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import cycle, islice
from types import SimpleNamespace
from typing import Any

import pytest

from dashboard.cluster.broker_requests import BrokerCalls
from dashboard.cluster.gateway import Gateway
from dashboard.live import frames, layer
from dashboard.live.sampler import Sampler
from tests.dashboard.conftest import Client
from tests.dashboard.live.socket_client import connected, frame_of

TABS = 200


@pytest.mark.slow
async def test_a_second_of_two_hundred_tabs_is_read_made_and_written_once(
    log_in: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients, sampler = [await log_in(role) for role in ("reader", "operator", "admin")], Sampler(gateway)
    brokers = (await sampler.sample()).brokers
    calls: Counter[str] = Counter()

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            calls[function.__name__] += 1
            return function(*given, **named)

        return call

    async with AsyncExitStack() as stack:
        tabs = [await stack.enter_async_context(connected(client)) for client in islice(cycle(clients), TABS)]
        for tab in tabs:
            await tab.send_to(json.dumps({"subscribe": [frames.OVERVIEW]}))
            await frame_of(tab, frames.OVERVIEW, "all")
        monkeypatch.setattr(BrokerCalls, "runtime_info", counted(BrokerCalls.runtime_info))
        monkeypatch.setattr(frames, "overview_frame", counted(frames.overview_frame))
        monkeypatch.setattr(layer, "json", SimpleNamespace(dumps=counted(json.dumps)))
        snapshot = await sampler.sample()
        for tab in tabs:
            assert (await frame_of(tab, frames.OVERVIEW))["now"] == round(snapshot.at, 3)
        assert calls == {"runtime_info": len(brokers), "overview_frame": 1, "dumps": 1}
