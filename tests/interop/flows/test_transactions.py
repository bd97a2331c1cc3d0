"""Open transactions of a Java producer that was killed: another one of its group is asked about them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from appliance.bench import rpc
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.peer import Peer
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.conftest import PEER
from tests.interop.flows.fates import COUNT, LATER, NEVER, QUEUES, SEEN
from tests.peers.fixtures import make_apache_peer

# A client that stands still for longer than these is asked about what it has settled, or asked once more: so they are
# longer than a busy machine lets one wait.
SETTINGS = {"transactionCheckInterval": "3000", "transactionTimeOut": "3000", "transactionCheckMax": "100"}


@pytest.fixture(scope="module")
def checking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A broker that asks after a second."""
    home = tmp_path_factory.mktemp("transactions")
    if PEER == "apache":
        peer: Peer = make_apache_peer(home, heap="512m", broker_properties=SETTINGS)
    else:
        peer = GantryPeer(home, broker_properties=SETTINGS)
    with peer:
        yield peer


def _numbers(program: ClientProgram) -> list[int]:
    return sorted(message.number for message in program.got())


def _checked(program: ClientProgram) -> dict[int, list[int]]:
    """Number to the check times that came with each question."""
    asked: dict[int, list[int]] = {}
    for number, times, *_ in program.lines("CHECK"):
        asked.setdefault(int(number), []).append(int(times))
    return asked


def test_another_producer_answers_for_one_that_was_killed(checking: Peer, java: JavaClient) -> None:
    topic = f"Transactions-orphans-{time.monotonic_ns()}"
    rpc.create_topic(checking.broker_address, topic, QUEUES)
    with java.consume(checking.namesrv_address, topic, f"{topic}-group") as consumer:
        with java.run("Transactions", checking.namesrv_address, topic, f"{topic}-p", 0, COUNT, "silent") as producer:
            producer.wait_done()
            producer.kill()
        with java.run("Transactions", checking.namesrv_address, topic, f"{topic}-p", 0, 0, "answer") as heir:
            expected = [number for number in range(COUNT) if number % 5 in SEEN]
            consumer.wait_for(lambda: len(_numbers(consumer)) >= len(expected), "all commits")
            heir.wait_for(lambda: {number % 5 for number in _checked(heir)} >= {LATER, NEVER}, "checks")
            time.sleep(2)  # what would come twice has time to come
            assert _numbers(consumer) == expected
    print(f"{len(_checked(heir))} transactions of a killed producer ended by another one")
