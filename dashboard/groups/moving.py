"""Moving a group in topics: to a time or a number, by so many messages, to where another group is, back to where it
was; and whether it stands there afterwards. For page and REST alike.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.audit.notes import note
from dashboard.cluster.errors import GatewayError, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import ResetPlan
from dashboard.groups.forms import TO_BEGIN, ResetForm
from dashboard.groups.group_cache import group_book
from dashboard.models.group_moves import GroupMove
from gantrymq.client.admin.offsets import TO_END
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


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one topic. was_told: running consumers were notified, else the offsets were written.

    elsewhere: queues that do not stand where they should; None when consumers were told: they go there, and confirm
    it, by and by. trouble: why it was perhaps not moved.
    """

    plan: ResetPlan
    was_told: bool = False
    elsewhere: tuple[QueueMove, ...] | None = None
    trouble: str = ""

    @property
    def is_verified(self) -> bool | None:
        return None if self.elsewhere is None else not self.elsewhere


async def plan_moves(gateway: Gateway, group: str, form: ResetForm) -> list[ResetPlan]:
    """What the form asks for, topic by topic; nothing is changed. Raises GatewayError."""
    return [await _plan(gateway, group, topic, form) for topic in form.cleaned_data["topic"]]


async def _plan(gateway: Gateway, group: str, topic: str, form: ResetForm) -> ResetPlan:
    """One topic, queue by queue."""
    wanted = form.cleaned_data
    if wanted["to"] == "shift":
        begin, end = await _ends(gateway, group, topic)
        return _written(end, shifted(begin.moves, end.moves, wanted["by"]))
    if wanted["to"] == "undo":
        done = await last_move(group, topic)
        if done is None:
            raise NotAllowed(
                gettext("The offsets of %(group)s in %(topic)s were not reset here within the last 24 hours.")
                % {"group": group, "topic": topic}
            )
        begin, end = await _ends(gateway, group, topic)
        return _written(end, undone(done, begin.moves, end.moves))
    if wanted["to"] == "copy":
        plan = await gateway.groups.plan_copy(wanted["source"], group, topic)
        if not plan.moves:
            raise NotAllowed(
                gettext("%(wanted)s has no offsets in %(topic)s, so there is nothing to copy.")
                % {"wanted": wanted["source"], "topic": topic}
            )
        return plan
    return await gateway.groups.plan_reset(group, topic, *form.position())


async def _ends(gateway: Gateway, group: str, topic: str) -> tuple[ResetPlan, ResetPlan]:
    begin = await gateway.groups.plan_reset(group, topic, TO_BEGIN, None)
    return begin, await gateway.groups.plan_reset(group, topic, TO_END, None)


async def move_all(gateway: Gateway, plans: Sequence[ResetPlan], who: str) -> list[Moved]:
    """Do them, one after the other; a topic that can't be moved holds up none of the others."""
    done = []
    for plan in plans:
        try:
            done.append(await _move(gateway, plan, who))
        except GatewayError as exc:
            done.append(Moved(plan, trouble=str(exc)))
    return done


async def _move(gateway: Gateway, plan: ResetPlan, who: str) -> Moved:
    await remember(plan, who)  # first: a move that is broken off may have moved some queues
    was_told = await gateway.groups.reset(plan)
    group_book.forget(plan.group)
    if was_told:
        return Moved(plan, True)
    after = await gateway.groups.plan_reset(plan.group, plan.topic, TO_END, None)
    return Moved(plan, False, tuple(astray(plan.moves, after.moves)))


def log_move(request: HttpRequest, moved: Moved, asked: Mapping[str, Any]) -> None:
    """One topic's move in the process's log, with where each queue was, and in the audit log."""
    plan = moved.plan
    before = {f"{one.queue.broker_name}.{one.queue.queue_id}": one.before for one in plan.moves}
    counts = {"skipped": plan.skipped, "repeated": plan.repeated, "trouble": moved.trouble}
    facts = {"event": "group_reset", "group": plan.group, "topic": plan.topic, "before": before}
    logger.info("group's offsets reset", extra=facts | counts)
    note(request, "group's offsets reset", plan.group, {**asked, "topic": plan.topic, **counts})


def shifted(begin: Sequence[QueueMove], end: Sequence[QueueMove], by: int) -> list[QueueMove]:
    """Each queue `by` messages further on, within what is stored; queues without a place stay without one."""
    first = {one.queue: one.after for one in begin}
    return [
        QueueMove(one.queue, one.address, one.before, min(max(one.before + by, first.get(one.queue, 0)), one.after))
        for one in end
        if one.before is not None
    ]


def astray(planned: Sequence[QueueMove], found: Sequence[QueueMove]) -> list[QueueMove]:
    """The planned moves whose queue stands elsewhere; `before` of what was found is where it stands."""
    now = {one.queue: one.before for one in found}
    return [one for one in planned if now.get(one.queue) != one.after]


def _written(plan: ResetPlan, moves: Sequence[QueueMove]) -> ResetPlan:
    """A move whose offsets are written: a group that runs would write its own over them."""
    return ResetPlan(plan.group, plan.topic, tuple(moves), plan.timestamp_ms, True, plan.is_online)
