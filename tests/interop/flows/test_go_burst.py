"""The Go client sends without waiting: it never tries a send again, so that whatever is refused or dropped is seen."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from tests.conftest import is_busy
from tests.interop.go_client import GoClient

QUEUES = 4
BODY_BYTES = 900
TIMED_OUT = "request timeout"


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_none_of_a_burst_fails_and_every_one_way_message_arrives(cluster: Peer, go: GoClient, count: int) -> None:
    topic = f"Interop-go-burst-{time.monotonic_ns()}"
    rpc.create_topic(cluster.broker_address, topic, QUEUES)

    def stored() -> int:
        return sum(rpc.max_offsets(cluster.broker_address, topic, QUEUES))

    with go.run("burst", cluster.namesrv_address, topic, count, BODY_BYTES) as program:
        program.wait_done()
        told: dict[str, Any] = json.loads(program.lines("BURST")[0][0])
        print(told)
        assert told["oneway"] == {"ok": count, "failed": 0, "errors": None}
        errors = told["asynchronous"]["errors"] or {}
        if is_busy():  # the client waits 3 s for an answer, from when it began to write
            errors.pop(TIMED_OUT, None)
        assert not errors, told
        program.wait_for(lambda: stored() >= 2 * count + 1, f"{2 * count + 1} messages")
    assert stored() == 2 * count + 1  # one looked up the way
