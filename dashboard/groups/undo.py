"""Going back to where a group was before it was moved: for a day, and within what is stored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext

from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.group_values import ResetPlan
from dashboard.models.group_moves import GroupMove
from gantrymq.client.admin.results import QueueMove

KEPT = timedelta(hours=24)
TOGETHER = timedelta(seconds=60)  # moves of one person within it are undone by one link


async def remember(plan: ResetPlan, who: str) -> None:
    """Keep where the queues were; what is too old goes."""
    now = timezone.now()
    await GroupMove.objects.filter(at__lt=now - KEPT).adelete()
    places = [[one.queue.broker_name, one.queue.queue_id, one.before] for one in plan.moves]
    await GroupMove.objects.acreate(
        group=plan.group, topic=plan.topic, places=json.dumps(places), who=who[:160], at=now
    )


async def last_move(group: str, topic: str = "") -> GroupMove | None:
    """The newest move that can be undone; of one topic if asked."""
    rows = GroupMove.objects.filter(group=group, at__gte=timezone.now() - KEPT)
    return await (rows.filter(topic=topic) if topic else rows).order_by("-at", "-pk").afirst()


async def last_moves(group: str) -> list[GroupMove]:
    """The newest move that can be undone, with those of other topics that were made together with it."""
    newest = await last_move(group)
    if newest is None:
        return []
    together = GroupMove.objects.filter(group=group, who=newest.who, at__gte=newest.at - TOGETHER)
    by_topic = {row.topic: row async for row in together.order_by("at", "pk")}
    return sorted(by_topic.values(), key=lambda row: row.topic)


def undone(move: GroupMove, begin: Sequence[QueueMove], end: Sequence[QueueMove]) -> list[QueueMove]:
    """Each queue back to its offset before the move, within what is stored. Raises NotAllowed.

    begin, end: plans to both ends of the topic. A queue in which the group had no place before stays where it is.
    """
    before = {(name, queue): offset for name, queue, offset in json.loads(move.places) if offset is not None}
    first = {one.queue: one.after for one in begin}
    moves = [
        QueueMove(one.queue, one.address, one.before, min(max(before[key], first.get(one.queue, 0)), one.after))
        for one in end
        if (key := (one.queue.broker_name, one.queue.queue_id)) in before
    ]
    if not moves:
        raise NotAllowed(
            gettext("The group had no offsets in this topic before the reset, so there is nothing to restore.")
        )
    return moves
