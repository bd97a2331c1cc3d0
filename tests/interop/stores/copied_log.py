"""What tests of slaves send, ask and compare; master and slave may be of either make."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import Message, SyncAdminClient, SyncProducer
from gantrymq.errors import GantryError
from tests.faults.kit.replicas import log_of
from tests.waiting import WITHIN_S

TOPIC = "Copied"
CATCH_UP_S = WITHIN_S  # a slave reports every 5 s, asks for topics every 10 s, and tries a lost master again after 5 s
ANSWER_S = 60.0  # for what hangs: a broker on a starved machine is no broker that is gone


def send(master: Peer, first: int, end: int, padding: bytes = b"") -> None:
    with SyncProducer(master.namesrv_address, delivery_timeout_s=ANSWER_S) as producer:
        for number in range(first, end):
            producer.send(Message(TOPIC, b"%d" % number + padding, keys=f"key-{number}"))


def expected(first: int, end: int) -> set[bytes]:
    return {b"%d" % number for number in range(first, end)}


def behind(master: Peer) -> str:
    with SyncAdminClient(master.namesrv_address, timeout_s=ANSWER_S) as admin:
        return admin.brokers.runtime_info(master.broker_address)["slaveBehindBytes"]


def bodies(slave: Peer) -> set[bytes]:
    """What the slave hands out of the topic's queues. A message that was sent twice, as its answer was late, is one."""
    found: set[bytes] = set()
    with SyncAdminClient(slave.namesrv_address, timeout_s=ANSWER_S) as admin:
        for queue_id in range(4):
            offset, end = 0, admin.offsets.max_at(slave.broker_address, TOPIC, queue_id)
            while offset < end:
                messages, offset, _, _ = admin.messages.pull_at(slave.broker_address, TOPIC, queue_id, offset)
                assert messages
                found.update(message.body for message in messages)
    return found


def log_end(peer: Peer) -> int:
    """Where its log ends, as the broker says; -1 while it says nothing: Apache's has no figures in its first second."""
    try:
        return rpc.log_end(peer.broker_address)
    except (GantryError, KeyError):
        return -1


def wait_for_same_log(master: Peer, slave: Peer, what: str) -> None:
    """Wait until both logs are the same bytes: the master may add to its own meanwhile, as with a delayed message."""
    wait_for(lambda: 0 < log_end(master) == log_end(slave) and log_of(slave) == log_of(master), what)


def topics_of(peer: Peer) -> dict[str, object]:
    """Those of its file, which is replaced as a whole; none before there is one."""
    path = peer.store / "config" / "topics.json"
    table: dict[str, object] = json.loads(path.read_text())["topicConfigTable"] if path.exists() else {}
    return table


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + CATCH_UP_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {CATCH_UP_S:g} s: {what}"
        time.sleep(0.3)
