"""Moving a group in topics: to a time or a number, by so many messages, to where another group is, back to where it
was; and whether it stands there afterwards. For page and REST alike.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.audit.notes import note
from dashboard.cluster.errors import GatewayError, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import ResetPlan
from dashboard.groups.forms import TO_BEGIN, ResetForm
from dashboard.groups.group_cache import group_book
from dashboard.groups.undo import last_move, remember, undone
from gantrymq.client.admin.offsets import TO_END
from gantrymq.client.admin.results import QueueMove

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
        begin = await gateway.groups.plan_reset(group, topic, TO_BEGIN, None)
        end = await gateway.groups.plan_reset(group, topic, TO_END, None)
        return _written(end, shifted(begin.moves, end.moves, wanted["by"]))
    if wanted["to"] == "undo":
        done = await last_move(group, topic)
        if done is None:
            raise NotAllowed(
                gettext("The offsets of %(group)s in %(topic)s were not reset here within the last 24 hours.")
                % {"group": group, "topic": topic}
            )
        begin = await gateway.groups.plan_reset(group, topic, TO_BEGIN, None)
        end = await gateway.groups.plan_reset(group, topic, TO_END, None)
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


def log_move(request: HttpRequest, moved: Moved, asked: Mapping[str, Any], who: Mapping[str, Any]) -> None:
    """One topic's move in the process's log, with where each queue was, and in the audit log."""
    plan = moved.plan
    before = {f"{one.queue.broker_name}.{one.queue.queue_id}": one.before for one in plan.moves}
    counts = {"skipped": plan.skipped, "repeated": plan.repeated, "trouble": moved.trouble}
    facts = {"event": "group_reset", "group": plan.group, "topic": plan.topic, "before": before}
    logger.info("group's offsets reset", extra=facts | counts | dict(who))
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
