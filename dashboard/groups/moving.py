"""Moving a group in a topic: to a time or a number, by so many messages, to where another group is, back to where it
was; and whether it stands there afterwards. For page and REST alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import ResetPlan
from dashboard.forms.groups import TO_BEGIN, ResetForm
from dashboard.groups.book import group_book
from dashboard.groups.undo import last_move, remember, undone
from gantrymq.client.admin.offsets import TO_END
from gantrymq.client.admin.results import QueueMove


async def plan_move(gateway: Gateway, group: str, form: ResetForm) -> ResetPlan:
    """What the form asks for, queue by queue; nothing is changed. Raises GatewayError."""
    wanted = form.cleaned_data
    topic = wanted["topic"]
    if wanted["to"] == "shift":
        begin = await gateway.groups.plan_reset(group, topic, TO_BEGIN, None)
        end = await gateway.groups.plan_reset(group, topic, TO_END, None)
        return _written(end, shifted(begin.moves, end.moves, wanted["by"]))
    if wanted["to"] == "undo":
        done = await last_move(group, topic)
        if done is None:
            raise NotAllowed(f"{group} was not moved in {topic} from here within the last 24 hours.")
        begin = await gateway.groups.plan_reset(group, topic, TO_BEGIN, None)
        end = await gateway.groups.plan_reset(group, topic, TO_END, None)
        return _written(end, undone(done, begin.moves, end.moves))
    if wanted["to"] == "copy":
        plan = await gateway.groups.plan_copy(wanted["source"], group, topic)
        if not plan.moves:
            raise NotAllowed(f"{wanted['source']} has no place in {topic}, so there is nothing to copy.")
        return plan
    return await gateway.groups.plan_reset(group, topic, *form.position())


async def move(gateway: Gateway, plan: ResetPlan, who: str) -> tuple[bool, list[QueueMove] | None]:
    """Do it; whether running consumers were told, and the queues that do not stand where they should.

    None for these when consumers were told: they go there, and confirm it, by and by. Raises GatewayError.
    """
    await remember(plan, who)  # first: a move that is broken off may have moved some queues
    was_told = await gateway.groups.reset(plan)
    group_book.forget(plan.group)
    if was_told:
        return True, None
    after = await gateway.groups.plan_reset(plan.group, plan.topic, TO_END, None)
    return False, astray(plan.moves, after.moves)


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
