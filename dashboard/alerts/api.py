"""/api/v1/alerts: those that are open or were, rules, channels, mutes, deliveries."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model
from django.http import HttpRequest
from ninja import Query, Router, Status

from dashboard.access.permissions import Permission
from dashboard.alerts import editing, preview
from dashboard.alerts.channel_views import send_test
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.rules import for_book, mutes_in_force, shown_rules
from dashboard.alerts.schemas import (
    AlertList,
    AlertOut,
    ChannelIn,
    ChannelOut,
    DeliveryList,
    MuteIn,
    MuteOut,
    NoticeOut,
    RuleIn,
    RuleOut,
    WouldHaveOut,
)
from dashboard.audit.notes import changed, note
from dashboard.models.alerts import AlertChannel, AlertDelivery, AlertMute, AlertRow, AlertRule
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, NotPossible, caller
from dashboard.rest.values import Offset

router = Router()
LIST_MAX = 200
READ, WRITE = Token(Permission.CLUSTER_READ), Token(Permission.ALARMS_WRITE)
CONFIG_READ, CONFIG = Token(Permission.CONFIG_READ), Token(Permission.CONFIG_WRITE)
Row = TypeVar("Row", bound=Model)


@router.get("", response={200: AlertList} | REFUSALS, auth=READ, summary="List alerts", operation_id="list_alerts")
async def list_alerts(
    request: HttpRequest,
    q: str = Query("", max_length=200, description="part of the title"),
    only_open: bool = Query(False, description="only those that are open"),
    offset: Offset = 0,
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> AlertList:
    rows = AlertRow.objects.found(q, only_open=only_open)
    shown = [AlertOut.of(row) async for row in rows[offset : offset + limit]]
    return AlertList(total=await rows.acount(), alerts=shown)


@router.get("/rules", response={200: list[RuleOut]} | REFUSALS, auth=READ, summary="List rules",
            operation_id="list_alert_rules")  # fmt: skip
async def list_rules(request: HttpRequest) -> list[RuleOut]:
    return [RuleOut.of(row) for row in await sync_to_async(shown_rules)()]


@router.post("/rules", response={201: RuleOut} | REFUSALS, auth=WRITE, summary="Create a rule",
             operation_id="create_alert_rule")  # fmt: skip
async def create_rule(request: HttpRequest, body: RuleIn) -> Any:
    saved = await _save_rule(body, None)
    note(request, "alert rule created", saved.name, body.dict())
    return Status(201, saved)


@router.put("/rules/{int:rule_id}", response={200: RuleOut} | REFUSALS, auth=WRITE, summary="Change a rule",
            operation_id="change_alert_rule")  # fmt: skip
async def change_rule(request: HttpRequest, rule_id: int, body: RuleIn) -> RuleOut:
    row = await _get(AlertRule, rule_id, deleted_at=None)
    before = await sync_to_async(RuleOut.of)(row)
    saved = await _save_rule(body, row)
    note(request, "alert rule changed", saved.name, changed(before.dict(), saved.dict()))
    return saved


@router.delete("/rules/{int:rule_id}", response={204: None} | REFUSALS, auth=WRITE,
            summary="Delete a rule, which ends its alerts",
            operation_id="delete_alert_rule")  # fmt: skip
async def delete_rule(request: HttpRequest, rule_id: int) -> Any:
    row = await _get(AlertRule, rule_id, deleted_at=None)
    await sync_to_async(editing.delete_rule)(row)
    note(request, "alert rule deleted", row.name)
    return Status(204, None)


@router.get("/rules/{int:rule_id}/would-have-rung", response={200: WouldHaveOut} | REFUSALS, auth=READ,
            summary="How often a rule would have alerted", operation_id="preview_alert_rule")  # fmt: skip
async def would_have_rung(request: HttpRequest, rule_id: int) -> WouldHaveOut:
    row = await _get(AlertRule, rule_id, deleted_at=None)
    if row.kind not in KINDS:
        raise NotPossible("This version does not know that kind of rule.")
    found = await sync_to_async(preview.would_have_rung)(for_book(row), time.time())
    last = None if found.last is None else datetime.fromtimestamp(found.last, UTC)
    return WouldHaveOut(times=found.times, days=preview.DAYS, hours=found.hours, last=last)


@router.get("/channels", response={200: list[ChannelOut]} | REFUSALS, auth=CONFIG_READ,
            summary="List channels; no secret is shown",
            operation_id="list_alert_channels")  # fmt: skip
async def list_channels(request: HttpRequest) -> list[ChannelOut]:
    return [ChannelOut.of(row) async for row in AlertChannel.objects.all()]


@router.post("/channels", response={201: ChannelOut} | REFUSALS, auth=CONFIG, summary="Create a channel",
             operation_id="create_alert_channel")  # fmt: skip
async def create_channel(request: HttpRequest, body: ChannelIn) -> Any:
    if body.kind == "webhook" and not body.settings.get("secret"):
        raise FormProblem({"settings": ["secret is missing: REST gives none out, so it comes from you."]})
    row = await _save_channel(body, None)
    note(request, "alert channel created", row.name, {"kind": row.kind} | editing.shown_settings(row))
    return Status(201, ChannelOut.of(row))


@router.put("/channels/{int:channel_id}", response={200: ChannelOut} | REFUSALS, auth=CONFIG,
            summary="Change a channel", operation_id="change_alert_channel")  # fmt: skip
async def change_channel(request: HttpRequest, channel_id: int, body: ChannelIn) -> ChannelOut:
    before = await _get(AlertChannel, channel_id)
    if before.kind != body.kind:
        raise FormProblem({"kind": ["A channel keeps its kind: make another one."]})
    was = editing.shown_facts(before)
    row = await _save_channel(body, before)
    note(request, "alert channel changed", row.name, changed(was, editing.shown_facts(row)))
    return ChannelOut.of(row)


@router.delete("/channels/{int:channel_id}", response={204: None} | REFUSALS, auth=CONFIG,
            summary="Delete a channel and its deliveries",
            operation_id="delete_alert_channel")  # fmt: skip
async def delete_channel(request: HttpRequest, channel_id: int) -> Any:
    row = await _get(AlertChannel, channel_id)
    await row.adelete()
    note(request, "alert channel deleted", row.name, {"kind": row.kind})
    return Status(204, None)


@router.post("/channels/{int:channel_id}/test", response={200: NoticeOut} | REFUSALS, auth=CONFIG,
             summary="Send a test now, and show the answer", operation_id="test_alert_channel")  # fmt: skip
async def test_channel(request: HttpRequest, channel_id: int) -> NoticeOut:
    row = await _get(AlertChannel, channel_id)
    delivery = await send_test(row, str(caller(request)["username"]))
    note(request, "alert channel tested", row.name, {"result": delivery.state})
    return NoticeOut.of(delivery)


@router.get("/mutes", response={200: list[MuteOut]} | REFUSALS, auth=READ, summary="List mutes",
            operation_id="list_mutes")  # fmt: skip
async def list_mutes(request: HttpRequest) -> list[MuteOut]:
    return [MuteOut.of(row) for row in await sync_to_async(mutes_in_force)()]


@router.post("/mutes", response={201: MuteOut} | REFUSALS, auth=WRITE,
            summary="Mute notifications until a time",
            operation_id="create_mute")  # fmt: skip
async def create_mute(request: HttpRequest, body: MuteIn) -> Any:
    rule = await _get(AlertRule, body.rule, deleted_at=None) if body.rule is not None else None
    until = body.until if body.until.tzinfo else body.until.replace(tzinfo=UTC)
    who = str(caller(request)["username"])
    try:
        row = await sync_to_async(editing.mute)(rule, body.pattern, body.reason, until, who)
    except editing.NotTaken as exc:
        raise FormProblem(exc.problems) from exc
    note(request, "alerts muted", rule.name if rule else "every rule", body.dict())
    return Status(201, MuteOut.of(row))


@router.delete("/mutes/{int:mute_id}", response={204: None} | REFUSALS, auth=WRITE, summary="End a mute",
               operation_id="end_mute")  # fmt: skip
async def end_mute(request: HttpRequest, mute_id: int) -> Any:
    row = await _get(AlertMute, mute_id)
    await sync_to_async(editing.end_mute)(row)
    note(request, "mute ended", f"silence {mute_id}", {"about": row.pattern})
    return Status(204, None)


@router.get("/deliveries", response={200: DeliveryList} | REFUSALS, auth=READ,
            summary="Notifications sent, and their results",
            operation_id="list_alert_deliveries")  # fmt: skip
async def list_deliveries(
    request: HttpRequest,
    offset: Offset = 0,
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> DeliveryList:
    rows = AlertDelivery.objects.all()
    shown = [NoticeOut.of(row) async for row in rows[offset : offset + limit]]
    return DeliveryList(total=await rows.acount(), deliveries=shown)


# ---- helpers


async def _get(model: type[Row], key: int, **also: Any) -> Row:
    row: Row | None = await model._default_manager.filter(pk=key, **also).afirst() if 0 < key < 1 << 63 else None
    if row is None:
        raise NotPossible("There is none with this id.", status=404)
    return row


async def _save_rule(body: RuleIn, row: AlertRule | None) -> RuleOut:
    def save() -> RuleOut:
        return RuleOut.of(editing.save_rule(body.values(), row))

    try:
        return await sync_to_async(save)()
    except editing.NotTaken as exc:
        raise FormProblem(exc.problems) from exc


async def _save_channel(body: ChannelIn, row: AlertChannel | None) -> AlertChannel:
    try:
        return await sync_to_async(editing.save_channel)(body.name, body.kind, body.settings, body.is_on, row)
    except editing.NotTaken as exc:
        raise FormProblem(exc.problems) from exc
