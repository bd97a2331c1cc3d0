"""How the queues of a topic are shared among the consumers of a group: pure functions of the same input everywhere.

Each consumer computes its own share. That works because all sort the same queues and the same client ids the same way,
and for a moment it does not when their views differ: then a queue is consumed twice or not at all until the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gantrymq.message.model import MessageQueue

AllocateStrategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]


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


def share_of(
    client_id: str,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    strategy: AllocateStrategy = allocate_averagely,
) -> list[MessageQueue]:
    """This client's queues: sorts as every other client does, then applies the strategy."""
    return strategy(client_id, sorted(queues), sorted(set(client_ids)))
