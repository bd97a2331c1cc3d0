"""Running groups of official Java consumers: sent back in time, and handing over queues that they hold locks on."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.peer import Peer
from gantrymq.errors import GantryError
from gantrymq.remoting.bodies import ResetOffsetBody
from gantrymq.remoting.codes import RequestCode
from tests.interop.clients import ClientProgram, Got, JavaClient
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.slow

QUEUES = 4
LOCK_LIFE_S = 6
# A client may renew a lock while it gives the queue away: then the broker keeps the queue for it, 60 s.
SHARED_WITHIN_S = 120
FAST_CLIENT = "-Drocketmq.client.rebalance.waitInterval=500 -Drocketmq.client.rebalance.lockInterval=1000"


RELEASED = {"queueLockGraceTime": "1000"}
EXPIRING = {"queueLockGraceTime": "-1", "rocketmq.broker.rebalance.lockMaxLiveTime": str(LOCK_LIFE_S * 1000)}


@pytest.fixture(params=[RELEASED, EXPIRING], ids=["released", "expiring"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Peer, bool]]:
    """A broker, and whether the locks of a dead member wait until they expire, after LOCK_LIFE_S."""
    with GantryPeer(tmp_path / "cluster", broker_properties=request.param) as running:
        yield running, request.param is EXPIRING


def test_a_running_group_that_is_reset_by_time_goes_on_there(cluster: Peer, java: JavaClient) -> None:
    half, topic = 200, f"Interop-reset-{time.monotonic_ns()}"
    group = f"{topic}-group"
    rpc.create_topic(cluster.broker_address, topic, QUEUES)
    with java.consume(cluster.namesrv_address, topic, group) as consumer:
        consumer.wait_started()
        _produce(cluster, java, topic, half)
        time.sleep(1)  # the moment lies clearly between the two halves
        moment_ms = int(time.time() * 1000)
        time.sleep(1)  # on its other side too
        _produce(cluster, java, topic, half)
        consumer.wait_for(lambda: consumer.count("GOT") >= 2 * half, "every message")
        _wait_committed(cluster, group, topic, 2 * half)
        consumed = len(consumer.got())
        fields = {"topic": topic, "group": group, "timestamp": str(moment_ms), "isForce": "true"}
        answer = rpc.ask(cluster.broker_address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields)
        targets = ResetOffsetBody.from_json(answer.body).offset_table
        # nearest in time: the last message of the first half or the first of the second
        expected = 2 * half - sum(targets.values())
        assert half <= expected <= half + QUEUES
        consumer.wait_for(lambda: consumer.count("GOT") >= consumed + expected, "the second half again")
        again = consumer.got()[consumed:]
        assert _firsts(again) == {queue.queue_id: offset for queue, offset in targets.items()}
        assert len(again) == expected
        _wait_committed(cluster, group, topic, 2 * half)


def test_an_ordered_group_hands_queues_over_when_a_member_is_killed(
    locks: tuple[Peer, bool], java: JavaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cluster, are_expiring), count, topic = locks, 3000, "Interop-handover"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", FAST_CLIENT)
    rpc.create_topic(cluster.broker_address, topic, QUEUES)
    with (
        java.consume(cluster.namesrv_address, topic, "ordered", orderly=True) as one,
        java.consume(cluster.namesrv_address, topic, "ordered", orderly=True) as other,
        contextlib.ExitStack() as later,
    ):
        # Before there are messages: a Java client that handles some keeps their queue's lock for 20 s more.
        other.wait_for(lambda: _share_fairly(one, other), "halves of the queues", SHARED_WITHIN_S)
        producer = later.enter_context(java.produce(cluster.namesrv_address, topic, count, 200))
        other.wait_for(lambda: len(one.got()) > 50 and len(other.got()) > 50, "messages for both")
        lost, kept = one.queues(), other.queues()
        killed_at = time.monotonic()
        one.kill()
        other.wait_for(lambda: any(got.queue_id in lost for got in other.got()), "queues handed over")
        waited_s = time.monotonic() - killed_at
        if are_expiring:
            assert waited_s > 1, "the dead member's locks hold until they expire"
        else:
            assert waited_s < 50, "locks live a minute, but the broker saw the member's connection break"
        producer.wait_done()
        other.wait_for(lambda: _numbers(one) | _numbers(other) == set(range(count)), "every message")
        for queue_id in lost:
            _check_gapless([got for got in other.got() if got.queue_id == queue_id])
        assert kept | lost == set(range(QUEUES))
        print(f"queues of a killed member went on after {waited_s:.1f} s")


def test_a_member_that_leaves_properly_hands_its_queues_over_at_once(
    cluster: Peer, java: JavaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, topic = 1000, f"Interop-farewell-{time.monotonic_ns()}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", FAST_CLIENT)
    rpc.create_topic(cluster.broker_address, topic, QUEUES)
    group = f"{topic}-group"
    with java.consume(cluster.namesrv_address, topic, group, orderly=True) as stays:
        with java.consume(cluster.namesrv_address, topic, group, orderly=True) as leaves:
            leaves.wait_for(lambda: _share_fairly(stays, leaves), "halves of the queues", SHARED_WITHIN_S)
        left_at = time.monotonic()
        stays.wait_for(lambda: stays.queues() == set(range(QUEUES)), "the queues of the other")
        waited_s = time.monotonic() - left_at
        assert waited_s < 50, "it unlocked its queues: nobody had to wait for its locks to expire"
        _produce(cluster, java, topic, count)
        stays.wait_for(lambda: _numbers(stays) == set(range(count)), "every message")
        print(f"it had all queues {waited_s:.1f} s after the other left; locks live 60 s")


def _produce(cluster: Peer, java: JavaClient, topic: str, count: int) -> None:
    with java.produce(cluster.namesrv_address, topic, count) as producer:
        producer.wait_done()


def _wait_committed(cluster: Peer, group: str, topic: str, total: int) -> None:
    """Until the group's offsets sum up to `total`: consumers commit now and then."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        offsets = [_committed(cluster, group, topic, queue_id) for queue_id in range(QUEUES)]
        if sum(offsets) == total:
            return
        assert time.monotonic() < deadline, f"committed {offsets}, expected {total} together"
        time.sleep(0.2)


def _committed(cluster: Peer, group: str, topic: str, queue_id: int) -> int:
    fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue_id)}
    with contextlib.suppress(GantryError):
        return int(rpc.ask(cluster.broker_address, RequestCode.QUERY_CONSUMER_OFFSET, fields).ext_fields["offset"])
    return 0  # not told yet


def _share_fairly(first: ClientProgram, second: ClientProgram) -> bool:
    one, other = first.queues(), second.queues()
    return len(one) == len(other) == QUEUES // 2 and one | other == set(range(QUEUES))


def _numbers(consumer: ClientProgram) -> set[int]:
    return {got.number for got in consumer.got()}


def _firsts(messages: Sequence[Got]) -> dict[int, int]:
    """Queue id to the smallest offset consumed of it."""
    firsts: dict[int, list[int]] = defaultdict(list)
    for message in messages:
        firsts[message.queue_id].append(message.queue_offset)
    return {queue_id: min(offsets) for queue_id, offsets in firsts.items()}


def _check_gapless(messages: Sequence[Got]) -> None:
    offsets = [message.queue_offset for message in messages]
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
