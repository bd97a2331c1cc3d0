"""Which queues a member of a group gets, when the broker says (400): pure functions of the same input on all brokers.

A group that pulls: as its clients would share the queues themselves. A group that pops: every member all queues of each
broker, as one queue with the id -1; or, when only so many members are to share, its own share and those of the members
behind it (RocketMQ: popShareQueueNum).
"""

from __future__ import annotations

from collections.abc import Sequence

from appliance.broker.pop.modes import POP, Mode
from gantrymq.client.consume.rebalance import AllocateStrategy, allocate_averagely, allocate_by_circle
from gantrymq.message.model import MessageQueue

ANY_QUEUE = -1
STRATEGIES: dict[str, AllocateStrategy] = {"AVG": allocate_averagely, "AVG_BY_CIRCLE": allocate_by_circle}


def assigned(
    strategy: AllocateStrategy, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str], mode: Mode
) -> list[MessageQueue]:
    """The queues of one member. queues, members: sorted."""
    if mode.name != POP:
        return strategy(client_id, queues, members)
    if mode.share <= 0 or mode.share >= len(members) - 1:
        return list(dict.fromkeys(queue._replace(queue_id=ANY_QUEUE) for queue in queues))
    if client_id not in members or not queues:
        return []
    at = members.index(client_id)
    if len(members) > len(queues):  # each gets one
        return [queues[at % len(queues)]]
    sharing = [members[(at + step) % len(members)] for step in range(mode.share + 1)]
    return list(dict.fromkeys(queue for member in sharing for queue in strategy(member, queues, members)))
