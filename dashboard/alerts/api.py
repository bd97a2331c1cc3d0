"""/api/v1/alerts: those that are open or were, rules, channels, mutes, deliveries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model
from django.http import HttpRequest
from ninja import Query

from dashboard.access.permissions import Permission
from dashboard.alerts import editing, handling, preview
from dashboard.alerts.channel_views import send_test
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.rules import for_book, mutes_in_force, shown_rules
from dashboard.alerts.schemas import (
    AcknowledgedIn,
    AlertList,
    AlertNoteIn,
    AlertOut,
    AssigneeIn,
    ChannelIn,
    ChannelList,
    ChannelOut,
    MuteIn,
    MuteList,
    MuteOut,
    NoticeList,
    NoticeOut,
    RuleIn,
    RuleList,
    RuleOut,
    RulePreviewOut,
)
from dashboard.audit.notes import changed, note
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertMute, AlertRow, AlertRule
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit
from dashboard.rest.refusals import FormProblem, NotPossible, caller
from dashboard.rest.routes import Routes

router = Routes()
READ, WRITE = Token(Permission.CLUSTER_READ), Token(Permission.ALARMS_WRITE)
CONFIG_READ, CONFIG = Token(Permission.CONFIG_READ), Token(Permission.CONFIG_WRITE)
Row = TypeVar("Row", bound=Model)


@router.get("", auth=READ, summary="List alerts")
async def list_alerts(
    request: HttpRequest,
    q: str = Query("", max_length=200, description="part of the title"),
    only_open: bool = Query(False, description="only those that are open"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> AlertList:
    rows = AlertRow.objects.found(q, only_open=only_open).prefetch_related("notes")
    return await AlertList.of_rows(rows, AlertOut.of_row, cursor, limit)


@router.get("/{int:alert_id}", auth=READ, summary="One alert")
async def get_alert(request: HttpRequest, alert_id: int) -> AlertOut:
    return await sync_to_async(AlertOut.of_row)(await _get(AlertRow, alert_id))


@router.put(
    "/{int:alert_id}/acknowledged", auth=WRITE, response=409, summary="Acknowledge an alert, or withdraw that"
)  # fmt: skip
async def acknowledge_alert(request: HttpRequest, alert_id: int, body: AcknowledgedIn) -> AlertOut:
    row = await _get(AlertRow, alert_id)
    if body.is_acknowledged:
        await _handled(handling.acknowledge, row, caller(request))
    else:
        await _handled(handling.withdraw, row)
    note(request, "alert acknowledged" if body.is_acknowledged else "acknowledgement withdrawn", row.title)
    return await sync_to_async(AlertOut.of_row)(row)


@router.put(
    "/{int:alert_id}/assignee", auth=WRITE, response=409, summary="Assign an alert to an account, or take it back"
)
async def assign_alert(request: HttpRequest, alert_id: int, body: AssigneeIn) -> AlertOut:
    row = await _get(AlertRow, alert_id)
    await _handled(handling.assign, row, body.user)
    note(request, "alert assigned", row.title, {"to": body.user or "no account"})
    return await sync_to_async(AlertOut.of_row)(row)


@router.post("/{int:alert_id}/notes", auth=WRITE, response=201, summary="Add a note to an alert")
async def add_alert_note(request: HttpRequest, alert_id: int, body: AlertNoteIn) -> AlertOut:
    row = await _get(AlertRow, alert_id)
    await _handled(handling.add_note, row, body.text, caller(request))
    note(request, "note added to an alert", row.title, {"note": body.text})
    return await sync_to_async(AlertOut.of_row)(row)


@router.get("/rules", auth=READ, summary="List rules")
async def list_alert_rules(request: HttpRequest) -> RuleList:
    return RuleList.whole(map(RuleOut.of, await sync_to_async(shown_rules)()))


@router.post("/rules", auth=WRITE, response=201, summary="Create a rule")
async def create_alert_rule(request: HttpRequest, body: RuleIn) -> RuleOut:
    saved = await _save_rule(body, None)
    note(request, "alert rule created", saved.name, body.dict())
    return saved


@router.put("/rules/{int:rule_id}", auth=WRITE, summary="Change a rule")
async def update_alert_rule(request: HttpRequest, rule_id: int, body: RuleIn) -> RuleOut:
    row = await _get(AlertRule, rule_id, deleted_at=None)
    before = await sync_to_async(RuleOut.of)(row)
    saved = await _save_rule(body, row)
    note(request, "alert rule changed", saved.name, changed(before.dict(), saved.dict()))
    return saved


@router.delete("/rules/{int:rule_id}", auth=WRITE, summary="Delete a rule, which ends its alerts")
async def delete_alert_rule(request: HttpRequest, rule_id: int) -> None:
    row = await _get(AlertRule, rule_id, deleted_at=None)
    await sync_to_async(editing.delete_rule)(row)
    note(request, "alert rule deleted", row.name)


@router.get("/rules/{int:rule_id}/preview", auth=READ, response=409, summary="How often a rule would have alerted")
async def preview_alert_rule(request: HttpRequest, rule_id: int) -> RulePreviewOut:
    row = await _get(AlertRule, rule_id, deleted_at=None)
    if row.kind not in KINDS:
        raise NotPossible("This version does not know that kind of rule.")
    found = await sync_to_async(preview.would_have_rung)(for_book(row), time.time())
    last = None if found.last is None else datetime.fromtimestamp(found.last, UTC)
    return RulePreviewOut(times=found.times, days=preview.DAYS, hours=math.ceil(found.minutes / 60), last_at=last)


@router.get("/channels", auth=CONFIG_READ, summary="List channels; no secret is shown")
async def list_alert_channels(request: HttpRequest) -> ChannelList:
    return ChannelList.whole([ChannelOut.of(row) async for row in AlertChannel.objects.all()])


@router.post("/channels", auth=CONFIG, response=201, summary="Create a channel")
async def create_alert_channel(request: HttpRequest, body: ChannelIn) -> ChannelOut:
    if body.kind == "webhook" and not body.settings.get("secret"):
        raise FormProblem({"settings": ["secret is missing: REST gives none out, so it comes from you."]})
    row = await _save_channel(body, None)
    note(request, "alert channel created", row.name, {"kind": row.kind} | editing.shown_settings(row))
    return ChannelOut.of(row)


@router.put("/channels/{int:channel_id}", auth=CONFIG, summary="Change a channel")
async def update_alert_channel(request: HttpRequest, channel_id: int, body: ChannelIn) -> ChannelOut:
    before = await _get(AlertChannel, channel_id)
    if before.kind != body.kind:
        raise FormProblem({"kind": ["A channel keeps its kind: make another one."]})
    was = editing.shown_facts(before)
    row = await _save_channel(body, before)
    note(request, "alert channel changed", row.name, changed(was, editing.shown_facts(row)))
    return ChannelOut.of(row)


@router.delete("/channels/{int:channel_id}", auth=CONFIG, summary="Delete a channel and its deliveries")
async def delete_alert_channel(request: HttpRequest, channel_id: int) -> None:
    row = await _get(AlertChannel, channel_id)
    await row.adelete()
    note(request, "alert channel deleted", row.name, {"kind": row.kind})


@router.post("/channels/{int:channel_id}/test", auth=CONFIG, summary="Send a test now, and show the answer")
async def test_alert_channel(request: HttpRequest, channel_id: int) -> NoticeOut:
    row = await _get(AlertChannel, channel_id)
    delivery = await send_test(row, caller(request))
    note(request, "alert channel tested", row.name, {"result": delivery.state})
    return NoticeOut.of(delivery)


@router.get("/mutes", auth=READ, summary="List mutes")
async def list_mutes(request: HttpRequest) -> MuteList:
    return MuteList.whole(map(MuteOut.of, await sync_to_async(mutes_in_force)()))


@router.post("/mutes", auth=WRITE, response=(201, 404), summary="Mute notifications until a time")
async def create_mute(request: HttpRequest, body: MuteIn) -> MuteOut:
    rule = await _get(AlertRule, body.rule_id, deleted_at=None) if body.rule_id is not None else None
    who = caller(request)
    try:
        row = await sync_to_async(editing.mute)(rule, body.pattern, body.reason, body.ends_at, who)
    except editing.NotTaken as exc:
        raise _refused(exc) from exc
    note(request, "alerts muted", rule.name if rule else "every rule", body.dict())
    return MuteOut.of(row)


@router.delete("/mutes/{int:mute_id}", auth=WRITE, summary="End a mute")
async def end_mute(request: HttpRequest, mute_id: int) -> None:
    row = await _get(AlertMute, mute_id)
    await sync_to_async(editing.end_mute)(row)
    note(request, "mute ended", f"silence {mute_id}", {"about": row.pattern})


@router.get("/deliveries", auth=READ, summary="Notifications sent, and their results")
async def list_alert_deliveries(
    request: HttpRequest,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> NoticeList:
    rows = AlertDelivery.objects.all()
    return await NoticeList.of_rows(rows, NoticeOut.of, cursor, limit)


# ---- helpers

NAMES = {"until": "ends_at", "channels": "channel_ids", "rule": "rule_id"}  # of REST, for fields of the pages'


def _refused(exc: editing.NotTaken) -> FormProblem:
    return FormProblem({NAMES.get(name, name): texts for name, texts in exc.problems.items()})


async def _get(model: type[Row], key: int, **also: Any) -> Row:
    row: Row | None = await model._default_manager.filter(pk=key, **also).afirst() if 0 < key < 1 << 63 else None
    if row is None:
        raise NotPossible("There is none with this id.", status=404)
    return row


async def _handled(act: Callable[..., object], row: AlertRow, *given: str) -> None:
    """Do it, or say in REST's words why not."""
    try:
        await sync_to_async(act)(row, *given)
    except handling.AlreadyOver as exc:
        raise NotPossible(str(exc)) from exc
    except editing.NotTaken as exc:
        raise _refused(exc) from exc


async def _save_rule(body: RuleIn, row: AlertRule | None) -> RuleOut:
    def save() -> RuleOut:
        return RuleOut.of(editing.save_rule(body.values(), row))

    try:
        return await sync_to_async(save)()
    except editing.NotTaken as exc:
        raise _refused(exc) from exc


async def _save_channel(body: ChannelIn, row: AlertChannel | None) -> AlertChannel:
    try:
        return await sync_to_async(editing.save_channel)(body.name, body.kind, body.settings, body.is_on, row)
    except editing.NotTaken as exc:
        raise _refused(exc) from exc
