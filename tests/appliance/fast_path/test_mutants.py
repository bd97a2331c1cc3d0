"""What both paths decide by stands in one place, and the comparison notices when one of them decides by something else.

Each bound that the twin is given, and each rule named here, is changed on one side only: a run of the scene that shows
it has to fail then. Without a change the same run passes.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.broker import fast_path
from appliance.broker.fast_path import Bounds
from gantrymq.client.connection.broker_calls import PULL_READ_AGAIN
from gantrymq.remoting.admin_bodies import TopicConfig
from store.queues.tags import TagsCodes
from tests.appliance.fast_path.pulls import fill, pull
from tests.appliance.fast_path.rig import Pair, Side, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send

Scene = Callable[[Pair], Awaitable[None]]
SMALL = {"consume_queue_file_bytes": 40 * 20, "index_entries": 50, "index_slots": 20}


async def one_burst(pair: Pair) -> None:
    """Keys wait while the index file is new, and are put into it together."""
    waited: dict[Side, list[int]] = {pair.fast: [], pair.plain: []}
    for side, counts in waited.items():
        parts = side.broker.store.parts
        put = parts.dispatcher.put_pending

        def counted(index: Any = parts.index, put: Any = put, counts: list[int] = counts) -> None:
            counts.append(len(index.pending))
            put()

        parts.dispatcher.put_pending = counted  # type: ignore[method-assign]
    await pair.receive(send(0, b"no key", "TAGS\x01a", e="0"))
    burst = b"".join(send(number, e="0") for number in range(600))
    assert pair.fast.fast_path is not None
    assert pair.fast.fast_path.serve(burst, 0, 1000, pair.fast.connection) == len(burst)  # in one turn, on any machine
    await pair.plain.receive(burst)
    assert max(waited[pair.fast]) == max(waited[pair.plain])


async def nothing_of_that_tag(pair: Pair) -> None:
    """A pull ends where it has looked at enough units in vain."""
    await fill(pair, 0)
    await pair.receive(send(99, b"", "TAGS\x01TagZ", e="1"))
    await pair.receive(b"".join(send(100 + number, e="1") for number in range(1000)))
    await pair.receive(pull(1, 0, subscription="TagZ"))
    assert pair.fast.served_fast > 1000


async def units_of_several_files(pair: Pair) -> None:
    """A pull of few messages ends with a queue's file, one of many goes on in the next one."""
    await fill(pair)
    for side in (pair.fast, pair.plain):
        side.broker.store.queue_flusher.finish()
        for queue in side.broker.store.parts.queues:
            queue.trim(0)
    await pair.receive(pull(1, 20))


async def a_send(pair: Pair) -> None:
    await first_messages(pair)
    await pair.receive(send(10) + batch(11, [b"a", b"b"]))


async def never_slow(pair: Pair) -> None:
    await a_send(pair)
    told = []
    for side in (pair.fast, pair.plain):
        side.broker.store.stats.sample(1e12)
        told.append(side.broker.store.stats.put_distribution())
    assert told[0] == told[1]


async def a_second_look(pair: Pair) -> None:
    """A pull that asks the broker to look at its first message itself is Python's."""
    await fill(pair, 10)
    served = pair.fast.served_fast
    await pair.receive(pull(1, 0, sysFlag=str(5 | PULL_READ_AGAIN), maxMsgNums="1"))
    assert pair.fast.served_fast == served


BOUNDS: dict[str, tuple[Any, Scene]] = {
    "pending_max": (100, one_burst),
    "filter_units_min": (400, nothing_of_that_tag),
    "units_per_look": (16, units_of_several_files),
    "slow_s": (0.0, never_slow),
    "read_again": (1 << 21, a_second_look),
}
UNSEEN = {"copied_bytes_max"}  # a copy or a view: clients get the same bytes


async def run(folder: Path, scene: Scene) -> None:
    with pair_of_brokers(folder, store=SMALL if scene in (one_burst, units_of_several_files) else None) as pair:
        await scene(pair)
        if scene is not one_burst:  # its answers are not written yet
            pair.check()


def test_each_bound_has_a_scene() -> None:
    assert {*BOUNDS, *UNSEEN} == set(Bounds._fields)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Bounds:
    """Nothing is slow here, on whatever machine."""
    monkeypatch.setattr("store.appender.SLOW_S", 1e6)
    return Bounds(slow_s=1e6)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("is_mutant", [False, True])
async def test_a_bound_of_one_side_only_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: Bounds, name: str, is_mutant: bool
) -> None:
    value, scene = BOUNDS[name]
    given = patient._replace(**{name: value}) if is_mutant else patient
    monkeypatch.setattr(fast_path, "Bounds", lambda: given)
    with pytest.raises(AssertionError) if is_mutant else contextlib.nullcontext():
        await run(tmp_path, scene)


async def reads_by_tag(pair: Pair) -> None:
    await fill(pair, 30)
    await pair.receive(pull(1, 0, subscription="TagC"))
    await pair.receive(pull(2, 0))


def another_crc(_pair: Pair, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("store.appender._crc32", lambda body: zlib.crc32(body) ^ 1)


def another_code_of_tags(_pair: Pair, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TagsCodes, "code", lambda self, slot, properties, timestamp: 7)


def a_topic_with_fewer_queues(pair: Pair, _patch: pytest.MonkeyPatch) -> None:
    pair.plain.broker.topics.update(TopicConfig("orders", 1, 1))


def a_smaller_limit_of_pulls(pair: Pair, _patch: pytest.MonkeyPatch) -> None:
    store = pair.plain.broker.store
    store.limits = store.limits._replace(memory_count_max=3)


def another_hash_of_keys(_pair: Pair, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("store.index.service.key_hash", lambda *_: 7)


RULES = {
    another_crc: a_send,
    another_code_of_tags: reads_by_tag,
    a_topic_with_fewer_queues: a_send,
    a_smaller_limit_of_pulls: reads_by_tag,
    another_hash_of_keys: a_send,
}


@pytest.mark.parametrize("change", RULES)
@pytest.mark.parametrize("is_mutant", [False, True])
async def test_a_rule_of_one_side_only_is_noticed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, change: Callable[[Pair, pytest.MonkeyPatch], None], is_mutant: bool
) -> None:
    if is_mutant:
        change(pair, monkeypatch)
    await RULES[change](pair)
    with pytest.raises(AssertionError) if is_mutant else contextlib.nullcontext():
        pair.check()
