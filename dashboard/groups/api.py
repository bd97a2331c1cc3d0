"""/api/v1/groups: list, get, move, pause, delete."""

from __future__ import annotations

import logging

from django.http import HttpRequest
from ninja import Query, Router, Status

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import BrokerUnreachable, NotAllowed
from dashboard.cluster.gateway import gateway
from dashboard.groups.changes import consuming_facts, delete_group, set_consuming
from dashboard.groups.forms import ResetForm
from dashboard.groups.group_cache import group_book
from dashboard.groups.listing import SORTS, rows_of, sorted_rows
from dashboard.groups.moving import Moved, log_move, move_all, plan_moves
from dashboard.groups.schemas import (
    ConsumingIn,
    ConsumingOut,
    GroupDetailOut,
    GroupList,
    GroupOut,
    ResetIn,
    ResetOut,
    ResetsIn,
    ResetsOut,
    ResetTo,
    SeenGroupOut,
    StacksOut,
)
from dashboard.groups.selection import GroupSelection, select
from dashboard.groups.whole import group_view
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, caller
from dashboard.rest.values import Offset
from dashboard.status.board import board

logger = logging.getLogger(__name__)

router = Router()
LIST_MAX = 200
SORT_PATTERN = f"^({'|'.join(SORTS)})$"
READ = Token(Permission.GROUPS_READ)
WRITE = Token(Permission.GROUPS_WRITE)


@router.get("", response={200: GroupList} | REFUSALS, auth=READ, summary="List consumer groups with their lag",
            operation_id="list_groups")  # fmt: skip
async def list_groups(
    request: HttpRequest,
    q: str = Query("", description="part of the name"),
    topic: str = Query("", description="only groups of this topic, with their lag in it"),
    system: bool = Query(False, description="the cluster's own groups too"),
    sort: str = Query("name", pattern=SORT_PATTERN, description="not with topic: there the greatest lag is first"),
    down: bool = Query(False, description="the greatest first; unknown values are always last"),
    offset: Offset = 0,
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> GroupList:
    if topic:
        found, failures = await gateway().groups.of_topic(await gateway().topics.get(topic))
        found = [row for row in found if q.lower() in row.name.lower()]
        total = len(found)
        groups = [GroupOut.of(row) for row in found[offset : offset + limit]]
    else:
        chosen = await select(gateway(), GroupSelection(q, system))
        stored = board.snapshot.stored if board.snapshot is not None else None
        in_order = sorted_rows(rows_of(chosen.groups, stored), sort, down=down)[offset : offset + limit]
        shown = await group_book.rows(gateway(), [row.name for row in in_order])
        total, failures = len(chosen.groups), chosen.failures
        groups = [SeenGroupOut.of_row(row) for row in rows_of(shown, stored)]
    return GroupList(groups=groups, total=total, troubles=[f"{one.what}: {one.reason}" for one in failures])


@router.get("/{name}", response={200: GroupDetailOut} | REFUSALS, auth=READ, summary="One consumer group",
            operation_id="get_group")  # fmt: skip
async def get_group(request: HttpRequest, name: str) -> GroupDetailOut:
    return GroupDetailOut.of(await group_view(gateway(), name))


@router.get("/{name}/stacks", response={200: StacksOut} | REFUSALS, auth=READ,
            summary="Stacks of a member's threads", operation_id="get_member_stacks")  # fmt: skip
async def get_member_stacks(
    request: HttpRequest, name: str, client: str = Query(..., min_length=1, max_length=255, description="its client id")
) -> StacksOut:
    return StacksOut(group=name, client_id=client, stacks=await gateway().groups.stacks(name, client))


@router.post("/{name}/reset", response={200: ResetOut} | REFUSALS, auth=WRITE,
             summary="Reset a group's offsets in a topic", operation_id="reset_group")  # fmt: skip
async def reset_group(request: HttpRequest, name: str, body: ResetIn) -> ResetOut:
    [done] = await _reset(request, name, body, [body.topic])
    if done.trouble:
        raise BrokerUnreachable(done.trouble)
    return done


@router.post("/{name}/resets", response={200: ResetsOut} | REFUSALS, auth=WRITE,
             summary="Reset a group's offsets in several topics at once; it can be undone for a day",
             operation_id="reset_group_topics")  # fmt: skip
async def reset_group_topics(request: HttpRequest, name: str, body: ResetsIn) -> ResetsOut:
    return ResetsOut(resets=await _reset(request, name, body, body.topics))


async def _reset(request: HttpRequest, name: str, body: ResetTo, topics: list[str]) -> list[ResetOut]:
    """Plan all; when none is refused, move in one topic after the other."""
    detail = await gateway().groups.get(name)
    given = body.dict(exclude_none=True, exclude={"dry_run", "topic", "topics"})
    form = ResetForm(given | {"topic": topics}, topics=detail.resettable_topics)
    if not form.is_valid():
        raise FormProblem(form.problems())
    plans = await plan_moves(gateway(), name, form)
    if body.dry_run:
        note_nothing(request)
        return [ResetOut.of_move(Moved(plan, plan.is_online), is_done=False) for plan in plans]
    for plan in plans:
        if plan.refusal is not None:
            raise NotAllowed(plan.refusal)
    done = await move_all(gateway(), plans, caller(request)["username"])
    for moved in done:
        log_move(request, moved, given, caller(request))
    return [ResetOut.of_move(moved, is_done=not moved.trouble) for moved in done]


@router.put("/{name}/consuming", response={200: ConsumingOut} | REFUSALS, auth=WRITE,
            summary="Pause or resume a group", operation_id="set_group_consuming")  # fmt: skip
async def set_group_consuming(request: HttpRequest, name: str, body: ConsumingIn) -> ConsumingOut:
    changed = await set_consuming(gateway(), name, is_on=body.is_on)
    if not changed:
        note_nothing(request)
    else:
        note(
            request, "group resumed" if body.is_on else "group paused", name, consuming_facts(changed, is_on=body.is_on)
        )
        facts = {"event": "group_consuming", "group": name, "is_on": body.is_on}
        logger.info("group resumed" if body.is_on else "group paused", extra=facts | caller(request))
    return ConsumingOut(is_on=body.is_on, brokers=changed)


@router.delete("/{name}", response={204: None} | REFUSALS, auth=WRITE,
               summary="Delete a group with its offsets, retries and dead letters",
               operation_id="delete_group")  # fmt: skip
async def remove_group(request: HttpRequest, name: str) -> Status[None]:
    brokers = await delete_group(gateway(), name)
    note(request, "group deleted", name, {"brokers": ", ".join(brokers)})
    logger.info("group deleted", extra={"event": "group_deleted", "group": name} | caller(request))
    return Status(204, None)
