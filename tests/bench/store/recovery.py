"""The time until a broker serves again after kill -9, for GantryMQ and Apache, each with a store that it has filled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from appliance.bench import rpc
from appliance.bench.load_spec import Load, LoadSpec
from appliance.bench.peer import Peer, PeerError
from gantrymq.errors import GantryError

TOPIC = "BenchRecovery"
QUEUES = 8
BODY_BYTES = 1024
BATCH = 32
ANSWER_TIMEOUT_S = 300.0
FILL_TIMEOUT_S = 600.0
SETTLE_S = 6.0  # both have their checkpoints written meanwhile


class Reopened(NamedTuple):
    """Seconds from the command to the first answer, and of the broker's CPU until then."""

    what: str
    wall_s: float
    cpu_s: float
    messages: int


def measure_recovery(peer: Peer, load: Load, total_bytes: int, say: Callable[[str], None]) -> list[Reopened]:
    """Fill, kill at once, start; kill at rest, start; stop, start. Raises PeerError when messages are gone."""
    found: list[Reopened] = []
    with peer:
        rpc.create_topic(peer.broker_address, TOPIC, QUEUES)
        stored = 0
        for what, share in (("killed while writing", 1.0), ("killed at rest", 0.05), ("stopped", 0.05)):
            wanted = int(total_bytes * share) // BODY_BYTES
            spec = LoadSpec(
                kind="batch", address=peer.broker_address, topic=TOPIC, queue_count=QUEUES, connections=2, in_flight=2,
                body_bytes=BODY_BYTES, batch=BATCH, warm_s=0, measure_s=FILL_TIMEOUT_S, messages_max=wanted,
            )  # fmt: skip
            stored += load.run(spec).acknowledged
            if what != "killed while writing":
                time.sleep(SETTLE_S)  # what is written behind is not measured
            if what == "stopped":
                peer.stop_broker()
            else:
                peer.kill_broker()
            started = time.monotonic()
            peer.launch_broker()
            offsets = _first_answer(peer, started + ANSWER_TIMEOUT_S)
            found.append(Reopened(what, time.monotonic() - started, peer.broker.cpu_s(), sum(offsets)))
            say(f"{peer.label} {what}: {found[-1].wall_s:.2f} s, {found[-1].cpu_s:.2f} s of CPU")
            if sum(offsets) < stored:
                raise PeerError(f"{peer.label}: {stored} acknowledged, {sum(offsets)} there after it was {what}")
    return found


def _first_answer(peer: Peer, deadline: float) -> list[int]:
    while True:
        if peer.broker.exit_code is not None:
            raise PeerError(f"{peer.label}: broker ended: {peer.broker.last_output()}")
        try:
            return rpc.max_offsets(peer.broker_address, TOPIC, QUEUES)
        except GantryError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)
