"""/api/v1/groups: list, get, move, pause, set the mode, delete."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Query

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.gateway import gateway
from dashboard.groups.changes import MODE_CHANGED, consuming_facts, delete_group, set_consuming, set_mode
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
    LeaseList,
    LeaseOut,
    ModeIn,
    ModeOut,
    ResetIn,
    ResetList,
    ResetOut,
    SeenGroupOut,
    StacksOut,
)
from dashboard.groups.selection import GroupSelection, select
from dashboard.groups.whole import group_view
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, part_of, sentences
from dashboard.rest.refusals import caller, checked
from dashboard.rest.routes import Routes
from dashboard.rest.values import text_of
from dashboard.status.board import board

router = Routes(asks_cluster=True)
SORT_PATTERN = f"^({'|'.join(SORTS)})$"
READ = Token(Permission.GROUPS_READ)
WRITE = Token(Permission.GROUPS_WRITE)


@router.get("", auth=READ, response=404, summary="List consumer groups with their lag")
async def list_groups(
    request: HttpRequest,
    q: str = Query("", description="part of the name"),
    topic: str = Query("", description="only groups of this topic, with their lag in it"),
    system: bool = Query(False, description="the cluster's own groups too"),
    sort: str = Query("name", pattern=SORT_PATTERN, description="not with topic: there the greatest lag is first"),
    down: bool = Query(False, description="the greatest first; unknown values are always last"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> GroupList:
    part = part_of(cursor, limit)
    if topic:
        found, failures = await gateway().groups.of_topic(await gateway().topics.get(topic))
        found = [row for row in found if q.lower() in row.name.lower()]
        total = len(found)
        groups: list[GroupOut] = [GroupOut.of(row) for row in found[part.rows]]
    else:
        chosen = await select(gateway(), GroupSelection(q, system))
        stored = board.snapshot.stored if board.snapshot is not None else None
        in_order = sorted_rows(rows_of(chosen.groups, stored), sort, down=down)[part.rows]
        shown = await group_book.rows(gateway(), [row.name for row in in_order])
        total, failures = len(chosen.groups), chosen.failures
        groups = [SeenGroupOut.of_row(row) for row in rows_of(shown, stored)]
    return GroupList.cut(part, groups, total, failures)


@router.get("/{name}", auth=READ, summary="One consumer group")
async def get_group(request: HttpRequest, name: str) -> GroupDetailOut:
    return GroupDetailOut.of_view(await group_view(gateway(), name))


@router.get("/{name}/leases", auth=READ, summary="Messages that a group which pops has in flight")
async def list_leases(request: HttpRequest, name: str) -> LeaseList:
    detail = await gateway().groups.get(name)
    items = list(map(LeaseOut.of_lease, detail.leases))
    problems = sentences(detail.failures)
    return LeaseList(items=items, total=detail.in_flight, next=None, problems=problems, modes=dict(detail.modes))


@router.get("/{name}/stacks", auth=READ, summary="Stacks of a member's threads")
async def get_member_stacks(
    request: HttpRequest, name: str, client_id: str = Query(..., min_length=1, max_length=255)
) -> StacksOut:
    return StacksOut(group=name, client_id=client_id, stacks=await gateway().groups.stacks(name, client_id))


@router.post(
    "/{name}/reset", auth=WRITE, response=409, summary="Reset a group's offsets in topics; it can be undone for a day"
)
async def reset_group(request: HttpRequest, name: str, body: ResetIn) -> ResetList:
    return ResetList.whole(await _reset(request, name, body))


async def _reset(request: HttpRequest, name: str, body: ResetIn) -> list[ResetOut]:
    """Plan all; when none is refused, move in one topic after the other."""
    detail = await gateway().groups.get(name)
    if detail.no_reset:
        raise NotAllowed(detail.no_reset)
    given = body.dict(exclude_none=True, exclude={"dry_run", "topics"}) | ({"at": text_of(body.at)} if body.at else {})
    form = checked(ResetForm(given | {"topic": body.topics}, topics=detail.resettable_topics), topic="topics")
    plans = await plan_moves(gateway(), name, form)
    if body.dry_run:
        note_nothing(request)
        return [ResetOut.of_move(Moved(plan), is_done=False) for plan in plans]
    for plan in plans:
        if plan.refusal is not None:
            raise NotAllowed(plan.refusal)
    done = await move_all(gateway(), plans, caller(request))
    for moved in done:
        log_move(request, moved, given)
    return [ResetOut.of_move(moved, is_done=not moved.trouble) for moved in done]


@router.put("/{name}/consuming", auth=WRITE, response=409, summary="Pause or resume a group")
async def set_group_consuming(request: HttpRequest, name: str, body: ConsumingIn) -> ConsumingOut:
    changed = await set_consuming(gateway(), name, is_on=body.is_on)
    if not changed:
        note_nothing(request)
    else:
        note(
            request, "group resumed" if body.is_on else "group paused", name, consuming_facts(changed, is_on=body.is_on)
        )
    return ConsumingOut(is_on=body.is_on, brokers=changed)


@router.put("/{name}/mode", auth=WRITE, response=409, summary="Set how a group consumes a topic: by POP or by pulling")
async def set_group_mode(request: HttpRequest, name: str, body: ModeIn) -> ModeOut:
    brokers = await set_mode(gateway(), name, body.topic, body.mode)
    note(request, MODE_CHANGED, name, body.dict() | {"brokers": ", ".join(brokers)})
    return ModeOut(topic=body.topic, mode=body.mode, brokers=brokers)


@router.delete(
    "/{name}",
    auth=WRITE,
    response=409,
    summary="Delete a group with its offsets, retries and dead letters",
    operation_id="delete_group",
)
async def remove_group(request: HttpRequest, name: str) -> None:
    brokers = await delete_group(gateway(), name)
    note(request, "group deleted", name, {"brokers": ", ".join(brokers)})
