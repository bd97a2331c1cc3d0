"""The official Java client's transactions with our broker: committed, rolled back, asked about, answered by others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.peer import Peer
from tests.interop.checks import check_contents
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.conftest import PEER
from tests.interop.flows.fates import COMMITTED, COUNT, LATER, NEVER, QUEUES, ROLLED_BACK, SEEN, THROWS
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


@pytest.mark.parametrize("encoding", ["JSON", "ROCKETMQ"])
def test_java_commits_rolls_back_and_is_asked(checking: Peer, java: JavaClient, encoding: str) -> None:
    topic = f"Transactions-{encoding}-{time.monotonic_ns()}"
    rpc.create_topic(checking.broker_address, topic, QUEUES)
    expected = [number for number in range(COUNT) if number % 5 in SEEN]
    with (
        java.consume(checking.namesrv_address, topic, f"{topic}-group") as consumer,
        java.run(
            "Transactions", checking.namesrv_address, topic, f"{topic}-p", 0, COUNT, "answer", encoding=encoding
        ) as producer,
    ):
        producer.wait_done()
        consumer.wait_for(lambda: len(_numbers(consumer)) >= len(expected), "all commits")
        unsettled = [number for number in range(COUNT) if number % 5 == NEVER]
        producer.wait_for(lambda: _checked(producer).keys() >= set(unsettled), "all checks")
        time.sleep(2)  # what would come twice, or against a rollback, has time to come
        assert _numbers(consumer) == expected
        check_contents(consumer.got())
        checked = _checked(producer)
        states = {int(line[0]): line[1] for line in producer.lines("HALF")}
        for number in range(COUNT):
            fate = number % 5
            assert states[number] == {COMMITTED: "COMMIT_MESSAGE", ROLLED_BACK: "ROLLBACK_MESSAGE"}.get(fate, "UNKNOW")
            times = checked.get(number, [])
            if fate in (COMMITTED, ROLLED_BACK):
                assert times == []
            elif fate == THROWS:  # a round before the producer's first heartbeat counts, but asks nobody
                assert times == sorted(times) and times[-1] >= 2 > len(times) - 1, times
            else:
                assert len(times) == 1, times
        for asked, _, asked_topic, transaction_id, body in producer.lines("CHECK"):
            sent = next(line for line in producer.lines("HALF") if line[0] == asked)
            assert (asked_topic, transaction_id) == (topic, sent[2])
            assert body == f"body-{asked}-ä消息"
    print(f"{encoding}: {len(expected)} of {COUNT} seen, each once; {sum(map(len, checked.values()))} checks answered")


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


def test_a_broker_killed_amid_transactions_asks_about_the_open_ones_after_its_restart(
    java: JavaClient, tmp_path: Path
) -> None:
    topic = "Transactions-restart"
    with GantryPeer(tmp_path, broker_properties=SETTINGS) as cluster:
        rpc.create_topic(cluster.broker_address, topic, QUEUES)
        with java.run("Transactions", cluster.namesrv_address, topic, "p", 0, COUNT, "silent") as producer:
            producer.wait_done()
            cluster.kill_broker()
            producer.kill()
        cluster.start_broker()
        expected = [number for number in range(COUNT) if number % 5 in SEEN]
        with (
            java.consume(cluster.namesrv_address, topic, f"{topic}-group") as consumer,
            java.run("Transactions", cluster.namesrv_address, topic, "p", 0, 0, "answer"),
        ):
            consumer.wait_for(lambda: len(_numbers(consumer)) >= len(expected), "all commits")
            time.sleep(2)  # what would come twice has time to come
            assert _numbers(consumer) == expected
        assert sum(rpc.max_offsets(cluster.broker_address, topic, QUEUES)) == len(expected)
