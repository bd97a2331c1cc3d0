"""KINDS: every kind, how Python sends and reads it, and what its reader must have got from whoever sent it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from gantrymq.client.produce.trace_records import TraceKind
from gantrymq.errors import GantryError
from tests.interop.kinds import reading, sending
from tests.interop.kinds.scene import Got, Scene
from tests.waiting import until

RICH = ("ä消息🚀", "Tagä", "k1 k2", "ü🚀", 7)


@dataclass(frozen=True)
class Kind:
    """bodies: what readers get, sorted. check: what else must hold. not_from_java: why Java can't send it."""

    send: Callable[[Scene], Awaitable[None]]
    read: Callable[[Scene], AbstractAsyncContextManager[Any]]
    bodies: tuple[str, ...]
    check: Callable[[Scene], Awaitable[None]] | None = None
    not_from_java: str = ""


def fields(got: Got) -> tuple[str, str, str, str, int]:
    return got.body, got.tags, got.keys, got.p, got.flag


async def are_where_they_were_sent(scene: Scene) -> None:
    places = {got.body: got.queue_id for got in scene.got}
    assert (places["queue"], places["selector"]) == (3, 1)
    assert {fields(got)[1:] for got in scene.got if got.body == "sync"} == {("T", "k-sync", "ü", 0)}
    assert {got.topic for got in scene.got} == {scene.topic}


async def lie_beside_each_other(scene: Scene) -> None:
    assert len({got.queue_id for got in scene.got}) == 1
    assert sorted((got.offset, got.body) for got in scene.got) == [(n, f"b{n}") for n in range(5)]
    assert len({got.msg_id for got in scene.got}) == 5


async def are_whole(scene: Scene) -> None:
    assert {fields(got) for got in scene.got} == {RICH, ("-", "", "", "", 0)}


async def came_late(scene: Scene) -> None:
    (got,) = scene.got
    assert got.lag_ms >= 900


async def are_in_order(scene: Scene) -> None:
    """The messages of a key lie in one queue and came as they were sent, whichever member got them."""
    for key in "abc":
        mine = [got for got in scene.got if got.body.startswith(key)]
        assert [got.body for got in mine] == [f"{key}-{number}" for number in range(8)]
        assert len({got.queue_id for got in mine}) == 1


async def were_handed_over(scene: Scene) -> None:
    await are_in_order(scene)
    assert [got.member for got in scene.got].count("one") == 1


async def came_twice(scene: Scene) -> None:
    assert sorted((got.tries, got.topic) for got in scene.got) == [(0, scene.topic), (1, scene.topic)]
    assert len({got.msg_id for got in scene.got}) == 1


async def were_got_by_both(scene: Scene) -> None:
    assert sorted((got.member, got.body) for got in scene.got) == [
        (member, body) for member in ("one", "two") for body in ("one", "two")
    ]


async def were_committed(scene: Scene) -> None:
    async def has_all() -> bool:
        try:
            stats = await scene.admin.offsets.stats_at(scene.peer.broker_address, scene.group, scene.topic)
        except GantryError:
            return False  # it did not answer in time
        return sum(at.consumer_offset for at in stats.offset_table.values()) == 12

    await until(has_all)


async def are_seconds(scene: Scene) -> None:
    assert sorted((got.queue_id, got.offset) for got in scene.got) == [(queue_id, 1) for queue_id in range(4)]


async def left_a_trace(scene: Scene) -> None:
    """The sender's record and the reader's two."""
    msg_id = scene.got[0].msg_id

    async def is_told() -> bool:
        try:
            trace = await scene.admin.messages.trace(msg_id)
        except GantryError:
            return False  # the first record makes the topic
        groups = {(record.kind, record.group) for record in trace.records}
        sent = (TraceKind.PUB, f"{scene.topic}-producer")
        return groups == {sent, (TraceKind.SUB_BEFORE, scene.group), (TraceKind.SUB_AFTER, scene.group)}

    await until(is_told)


async def was_found_both_ways(scene: Scene) -> None:
    assert sorted(got.member for got in scene.got) == ["id", "key"]
    assert len({got.msg_id for got in scene.got}) == 1


NO_SUCH_CALL = "Java's client has no such call"
ONE_CODEC = "a Java process has one codec; flows/test_sdk_and_java.py has its LZ4 and Zstandard"
LETTERS = tuple(f"{key}-{number}" for key in "abc" for number in range(8))

KINDS = {
    "single": Kind(
        sending.single, reading.push, ("async", "oneway", "queue", "selector", "sync"), are_where_they_were_sent
    ),
    "many": Kind(
        sending.many, reading.push, tuple(f"{number:03}" for number in range(200)), not_from_java=NO_SUCH_CALL
    ),
    "blocking": Kind(sending.blocking, reading.blocking, ("one", "two")),
    "batch": Kind(
        sending.batch, partial(reading.push, batch_size=16), tuple(f"b{n}" for n in range(5)), lie_beside_each_other
    ),
    "properties": Kind(sending.properties, reading.push, ("-", RICH[0]), are_whole),
    "zlib": Kind(lambda scene: sending.packed(scene, "zlib"), reading.push, ("zlib " * 2000,)),
    "lz4, zstd": Kind(
        lambda scene: sending.packed(scene, "lz4", "zstd"),
        reading.push,
        ("lz4 " * 2000, "zstd " * 2000),
        not_from_java=ONE_CODEC,
    ),
    "delayed": Kind(sending.delayed, reading.push, ("later",), came_late),
    "transaction": Kind(sending.transaction, reading.push, ("asked", "commit")),
    "ordered": Kind(sending.keyed, partial(reading.push, ordered=True), LETTERS, are_in_order),
    "locks": Kind(sending.keyed, reading.locks, LETTERS, were_handed_over),
    "tags": Kind(sending.tags, partial(reading.push, expression="A || B"), ("A0", "A1", "B0", "B1")),
    "sql": Kind(sending.sql, partial(reading.push, sql="price > 10"), ("15", "25")),
    "broadcast": Kind(
        lambda scene: sending.plain(scene, "one", "two"),
        reading.broadcast,
        ("one", "one", "two", "two"),
        were_got_by_both,
    ),
    "retry": Kind(lambda scene: sending.plain(scene, "again"), reading.push, ("again", "again"), came_twice),
    "dead-letters": Kind(sending.dead_letters, reading.dead_letters, ("dead",)),
    "pull": Kind(
        lambda scene: sending.plain(scene, *map(str, range(12))),
        reading.pull,
        tuple(sorted(map(str, range(12)))),
        were_committed,
    ),
    "assign": Kind(sending.assign, reading.assign, ("second",) * 4, are_seconds),
    "request": Kind(sending.request, reading.request, tuple(sorted(sending.QUESTIONS))),
    "trace": Kind(
        lambda scene: sending.plain(scene, "traced", trace=True),
        partial(reading.push, trace=True),
        ("traced",),
        left_a_trace,
    ),
    "namespace": Kind(
        lambda scene: sending.plain(scene, "spaced", namespace="space"),
        partial(reading.push, namespace="space"),
        ("spaced",),
    ),
    "queries": Kind(sending.queries, reading.queries, ("found", "found"), was_found_both_ways),
}
