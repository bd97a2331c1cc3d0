"""What a running consumer counts, and its answer when a tool asks how it is doing (request 307)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.queue_locks import QueueLocks
from gantrymq.message.model import MessageQueue
from gantrymq.message.namespaces import NO_NAMESPACE, Namespace
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import SubscriptionData
from gantrymq.remoting.codes import PROTOCOL_VERSION_TEXT

SAMPLES = 13  # at 5 s each: rates cover the last minute


class _Topic:
    """Totals of one topic; times in seconds."""

    __slots__ = ("consume_calls", "consume_s", "failed", "ok", "pull_s", "pulled", "pulls")

    def __init__(self) -> None:
        self.ok = self.failed = self.consume_calls = self.pulled = self.pulls = 0
        self.consume_s = self.pull_s = 0.0

    def values(self) -> tuple[float, ...]:
        return self.ok, self.failed, self.consume_calls, self.consume_s, self.pulled, self.pulls, self.pull_s


class ConsumeCounters:
    """Counts as it goes; `sample` each five seconds makes rates out of the counts."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._samples: dict[str, deque[tuple[float, tuple[float, ...]]]] = {}

    def consumed(self, topic: str, count: int, *, is_done: bool, took_s: float) -> None:
        """A listener call ended."""
        totals = self._topics.get(topic) or self._topics.setdefault(topic, _Topic())
        if is_done:
            totals.ok += count
        else:
            totals.failed += count
        totals.consume_calls += 1
        totals.consume_s += took_s

    def pulled(self, topic: str, count: int, took_s: float) -> None:
        """A pull brought messages."""
        totals = self._topics.get(topic) or self._topics.setdefault(topic, _Topic())
        totals.pulled += count
        totals.pulls += 1
        totals.pull_s += took_s

    def sample(self) -> None:
        """Remember the totals now."""
        for topic, totals in self._topics.items():
            self._samples.setdefault(topic, deque(maxlen=SAMPLES)).append((time.monotonic(), totals.values()))

    def status(self, topic: str) -> dict[str, Any]:
        """The topic's ConsumeStatus, over the last minute."""
        totals = self._topics.get(topic, _Topic())
        samples = self._samples.get(topic)
        since, before = samples[0] if samples else (time.monotonic() - 60.0, (0.0,) * 7)
        seconds = max(time.monotonic() - since, 1e-3)
        ok, failed, calls, consume_s, pulled, pulls, pull_s = (
            now - then for now, then in zip(totals.values(), before, strict=True)
        )
        return {
            "consumeFailedMsgs": totals.failed,
            "consumeFailedTPS": failed / seconds,
            "consumeOKTPS": ok / seconds,
            "consumeRT": 1000 * consume_s / calls if calls else 0.0,
            "pullRT": 1000 * pull_s / pulls if pulls else 0.0,
            "pullTPS": pulled / seconds,
        }


def process_queue_info(process_queue: ProcessQueue, locks: QueueLocks | None) -> dict[str, Any]:
    """The queue's ProcessQueueInfo."""
    smallest, largest = process_queue.offsets
    locked_at = None if locks is None else locks.locked_at(process_queue.queue)
    locked_ms = 0 if locked_at is None else int((time.time() - (time.monotonic() - locked_at)) * 1000)
    return {
        "cachedMsgCount": process_queue.cached_messages,
        "cachedMsgMaxOffset": largest,
        "cachedMsgMinOffset": smallest,
        "cachedMsgSizeInMiB": process_queue.cached_bytes >> 20,
        "commitOffset": process_queue.commit_offset,
        "droped": process_queue.was_dropped(),  # Java's spelling is the protocol's
        "lastConsumeTimestamp": int(process_queue.last_consume_at * 1000),
        "lastLockTimestamp": locked_ms,
        "lastPullTimestamp": int(process_queue.last_pull_at * 1000),
        "locked": locked_at is not None,
        "transactionMsgCount": 0,
        "transactionMsgMaxOffset": 0,
        "transactionMsgMinOffset": 0,
        "tryUnlockTimes": 0,
    }


def running_info(
    *,
    name_servers: Iterable[str],
    concurrency: int,
    started_at_ms: int,
    subscriptions: Mapping[str, SubscriptionData],
    queues: Mapping[MessageQueue, ProcessQueue],
    counters: ConsumeCounters,
    locks: QueueLocks | None = None,
    namespace: Namespace = NO_NAMESPACE,
    workers: Sequence[Mapping[str, Any]] = (),
    stacks: str | None = None,
) -> bytes:
    """The body of the answer to 307 (ConsumerRunningInfo). locks: when ordered. stacks: when the tool asked for them.

    workers: what each listener call in progress holds, and since when; only GantryMQ's tools read it.
    """
    info = {
        "mqTable": {namespace.wrap_queue(queue): process_queue_info(held, locks) for queue, held in queues.items()},
        "properties": {
            "PROP_CLIENT_VERSION": PROTOCOL_VERSION_TEXT,
            "PROP_CONSUMEORDERLY": "false" if locks is None else "true",
            "PROP_CONSUMER_START_TIMESTAMP": str(started_at_ms),
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_NAMESERVER_ADDR": ";".join(name_servers),
            "PROP_THREADPOOL_CORE_SIZE": str(concurrency),
        },
        "statusTable": {namespace.wrap(topic): counters.status(topic) for topic in subscriptions},
        "subscriptionSet": [
            replace(each, topic=namespace.wrap(each.topic)).to_dict() for each in subscriptions.values()
        ],
        "workers": [dict(worker) for worker in workers],
    }
    if stacks is not None:
        info["jstack"] = stacks
    return fastjson.dumps(info)
