"""What the consumer groups of one broker have not consumed yet.

A queue without an offset of a group that has one elsewhere in the topic counts whole: what is not known to be consumed
is left. Only groups with members are waited for; the messages of others stay on the disk until the broker is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gantrymq.byte_size import readable
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import GantryError, ResponseError
from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences, TopicStatsTable
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import timeout

AT_ONCE = 16  # requests to the broker under way
NAME_S = 1.0  # waited for what only names slaves: a page waits for the whole look
PENDING = {"timerPending": "timed", "transactionPending": "of open transactions"}

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Left:
    """groups, absent: messages left by group, with members and without; at 0 a group is left out. pending: messages
    that no group can have yet, by their kind. connections: of clients and slaves, None if the broker does not tell.
    slaves: bytes that each connected one lacks, by its name."""

    groups: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, int] = field(default_factory=dict)
    pending: Mapping[str, int] = field(default_factory=dict)
    connections: int | None = None
    slaves: Mapping[str, int] = field(default_factory=dict)

    @property
    def waited_for(self) -> int:
        return sum(self.groups.values())

    def notes(self) -> list[str]:
        """What stays on the disk whatever the groups do, a sentence each."""
        found = [
            f"group {group} has {_messages(count)} left and no members" for group, count in sorted(self.absent.items())
        ]
        found += [f"{_messages(count)} {kind} wait for their time" for kind, count in self.pending.items()]
        return [
            *found,
            *(f"slave {address} lacks {readable(count)}" for address, count in self.slaves.items() if count),
        ]


def lag_of(offsets: Mapping[int, int], topic: TopicStatsTable) -> int:
    """Messages of a topic at one broker behind a group's next offsets, by queue."""
    return sum(
        max(queue.max_offset - max(offsets.get(place.queue_id, 0), queue.min_offset), 0)
        for place, queue in topic.offset_table.items()
    )


async def look(admin: AdminClient, address: str) -> Left:
    """Ask the broker. Raises GantryError: a broker that does not answer is not known to be drained."""
    table, info = await asyncio.gather(admin.offsets.all_at(address), admin.brokers.runtime_info(address))
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(topic: str) -> TopicStatsTable:
        async with room:
            try:
                return await admin.topics.stats_at(address, topic)
            except ResponseError as exc:
                if exc.code == ResponseCode.TOPIC_NOT_EXIST:
                    return TopicStatsTable()
                raise

    places = [(*key.rpartition("@")[::2], queues) for key, queues in table.items() if "@" in key]
    topics = sorted({topic for topic, _, _ in places})
    stats = dict(zip(topics, await asyncio.gather(*map(ask, topics)), strict=True))
    lags: dict[str, int] = {}
    for topic, group, queues in places:
        if lag := lag_of(queues, stats[topic]):
            lags[group] = lags.get(group, 0) + lag

    async def has_members(group: str) -> bool:
        async with room:
            try:
                return bool((await admin.clients.consumers_at(address, group)).connection_set)
            except ResponseError as exc:
                if exc.code == ResponseCode.CONSUMER_NOT_ONLINE:
                    return False
                raise

    online = dict(zip(lags, await asyncio.gather(*map(has_members, lags)), strict=True))
    pending = {kind: int(info[key]) for key, kind in PENDING.items() if int(info.get(key) or 0) > 0}
    return Left(
        {group: lag for group, lag in lags.items() if online[group]},
        {group: lag for group, lag in lags.items() if not online[group]},
        pending,
        int(info["connections"]) if info.get("connections", "").isdecimal() else None,
        await _slaves(admin, address, SlaveDifferences.of_runtime_info(info)),
    )


async def _slaves(admin: AdminClient, master: str, slaves: list[SlaveDifference]) -> dict[str, int]:
    """By broker name and id, as everywhere; one that does not tell which connection it has by its connection."""
    if not slaves:
        return {}
    info = await _soon(admin.cluster.info())
    names = {
        address: f"{each.broker_name}:{broker_id}"
        for each in (info.broker_addr_table.values() if info else ())
        if master in each.broker_addrs.values()
        for broker_id, address in each.broker_addrs.items()
        if broker_id
    }
    told = await asyncio.gather(*(_soon(admin.brokers.runtime_info(address)) for address in names))
    by_connection = {info.get("slaveConnection"): name for name, info in zip(names.values(), told, strict=True) if info}
    return {by_connection.get(slave.address, slave.address): slave.behind_bytes for slave in slaves}


async def _soon(answer: Awaitable[Answer]) -> Answer | None:
    """It, if it comes: a name server or a slave that does not answer hides nothing of what the master said."""
    try:
        async with timeout(NAME_S):
            return await answer
    except (GantryError, TimeoutError):
        return None


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"
