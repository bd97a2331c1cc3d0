"""A folder with open transactions goes from Apache's broker to ours, and from ours to Apache's, stopped and killed.

What was committed stays so and comes once; what was left open is asked about by the broker that has the folder now.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.bench import rpc
from gantrymq.message import record
from tests.interop.at_once import at_once as at_once
from tests.interop.clients import JavaClient
from tests.interop.flows.fates import COMMITTED, COUNT, QUEUES, SEEN
from tests.interop.stores.one_store import OneStore

pytestmark = pytest.mark.slow

TOPIC = "TransactionsBothWays"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
SETTINGS = {"transactionCheckInterval": "1000", "transactionTimeOut": "1000", "transactionCheckMax": "100"}


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("makes", [("apache", "gantry"), ("gantry", "apache")], ids="-".join)
def test_open_transactions_are_asked_about_by_the_next_broker(
    request: pytest.FixtureRequest, at_once: Callable[[pytest.Item], None], makes: tuple[str, str], end: str
) -> None:
    at_once(request.node)


def run_case(tmp_path: Path, java: JavaClient, makes: tuple[str, str], end: str) -> None:
    first, second = makes
    expected = [number for number in range(COUNT) if number % 5 in SEEN]
    with OneStore(tmp_path, **SETTINGS) as one:
        one.open(first)
        rpc.create_topic(one.address, TOPIC, QUEUES)
        with java.run("Transactions", one.namesrv_address, TOPIC, "p", 0, COUNT, "silent") as producer:
            producer.wait_done()
            producer.wait_for(lambda: producer.count("CHECK") > 40, "a first round of questions")
            one.leave(kill=end == "kill")
            producer.kill()
        before = one.at_rest()
        assert _stored(one) == [number for number in range(COUNT) if number % 5 == COMMITTED]
        one.open(second)
        with (
            java.consume(one.namesrv_address, TOPIC, f"{TOPIC}-group") as consumer,
            java.run("Transactions", one.namesrv_address, TOPIC, "p", 0, 0, "answer") as heir,
        ):
            consumer.wait_for(lambda: {message.number for message in consumer.got()} >= set(expected), "all commits")
            time.sleep(4)  # what would come twice has time to come
        one.leave(kill=False)
        stored = _stored(one)
        for queue, records in before.items():
            assert one.at_rest()[queue][: len(records)] == records
        assert sorted(set(stored)) == expected
        # Apache's asks about a half and about the copy of it when a crash came between, and about any half anew while
        # the last answer is under way, as on a busy machine: it stores each answer.
        assert second == "apache" or stored == expected
        print(
            f"{first}, {end}, {second}: {len(before[HALF_TOPIC, 0])} half messages handed over, "
            f"{heir.count('CHECK')} questions answered, {len(stored)} messages for {len(expected)} commits"
        )


def _stored(one: OneStore) -> list[int]:
    """Numbers of the messages that consumers can see, sorted."""
    rest = one.at_rest()
    messages = [record.decode_record(raw) for queue_id in range(QUEUES) for raw in rest.get((TOPIC, queue_id), [])]
    return sorted(int(message.properties["number"]) for message in messages)
