"""How the queues of a topic are shared among the consumers of a group: pure functions of the same input everywhere.

Each consumer computes its own share. That works because all sort the same queues and the same client ids the same way,
and for a moment it does not when their views differ: then a queue is consumed twice or not at all until the next round.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence

from gantrymq.message.model import MessageQueue

AllocateStrategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]

HASH_POINTS = 10  # RocketMQ: virtualNodeCnt


def allocate_averagely(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
    """Contiguous runs whose lengths differ by one at most (RocketMQ: AllocateMessageQueueAveragely).

    Both inputs are sorted. A client that is not in the list gets nothing, nor do clients beyond the number of queues.
    """
    if client_id not in client_ids:
        return []
    index = client_ids.index(client_id)
    share, rest = divmod(len(queues), len(client_ids))
    start = index * share + min(index, rest)
    return list(queues[start : start + share + (index < rest)])


def allocate_by_circle(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
    """Every n-th queue (RocketMQ: AllocateMessageQueueAveragelyByCircle): the brokers' load is mixed."""
    if client_id not in client_ids:
        return []
    return list(queues[client_ids.index(client_id) :: len(client_ids)])


def allocate_by_config(chosen: Iterable[MessageQueue]) -> AllocateStrategy:
    """These queues, whatever other members read (RocketMQ: AllocateMessageQueueByConfig). Each member names its own."""
    own = frozenset(chosen)

    def allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        return [queue for queue in queues if queue in own]

    return allocate


def allocate_by_machine_room(rooms: Iterable[str]) -> AllocateStrategy:
    """Only queues of brokers in these rooms, whose names are "room@name" (RocketMQ: AllocateMessageQueueByMachineRoom).
    Other rooms' queues stay unread by the group."""
    own = frozenset(rooms)

    def allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        near = [
            queue for queue in queues if queue.broker_name.count("@") == 1 and queue.broker_name.split("@")[0] in own
        ]
        index = client_ids.index(client_id)
        share = len(near) // len(client_ids)
        return near[share * index : share * (index + 1)] + near[share * len(client_ids) :][index : index + 1]

    return allocate


def allocate_machine_room_nearby(
    room_of_queue: Callable[[MessageQueue], str],
    room_of_client: Callable[[str], str],
    strategy: AllocateStrategy = allocate_averagely,
) -> AllocateStrategy:
    """The queues of a room among the members in it, those of rooms without a member among all, by another strategy
    (RocketMQ: AllocateMachineRoomNearby). A client id is "ip@instance_name"."""

    def allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        by_room: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_room.setdefault(room_of_queue(queue), []).append(queue)
        members: dict[str, list[str]] = {}
        for each in client_ids:
            members.setdefault(room_of_client(each), []).append(each)
        own = room_of_client(client_id)
        share = strategy(client_id, by_room.pop(own, []), members[own])
        for room in sorted(by_room.keys() - members.keys()):
            share += strategy(client_id, by_room[room], client_ids)
        return share

    return allocate


def allocate_by_consistent_hash(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """By hash, so that a member who comes or goes moves few queues; shares differ in size (RocketMQ:
    AllocateMessageQueueConsistentHash, with its ten points a member)."""
    if client_id not in client_ids:
        return []
    ring = sorted({_hash(f"{each}-{point}"): each for each in client_ids for point in range(HASH_POINTS)}.items())
    points = [point for point, _ in ring]
    texts = {
        queue: f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
        for queue in queues
    }
    return [
        queue for queue in queues if ring[bisect.bisect_left(points, _hash(texts[queue])) % len(ring)][1] == client_id
    ]


def _hash(text: str) -> int:
    import hashlib  # of one strategy only, and it loads OpenSSL's

    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


def share_of(
    client_id: str,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    strategy: AllocateStrategy = allocate_averagely,
) -> list[MessageQueue]:
    """This client's queues: sorts as every other client does, then applies the strategy."""
    return strategy(client_id, sorted(queues), sorted(set(client_ids)))
