"""/api/v1/alarms: what rings, rules, channels, silences, deliveries."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import F, Model
from django.http import HttpRequest
from ninja import Query, Router, Status

from dashboard.access.permissions import Permission
from dashboard.alerts import editing, preview
from dashboard.alerts.channel_views import send_test
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.rules import for_book, shown_rules, silences_in_force
from dashboard.alerts.schemas import (
    AlarmList,
    AlarmOut,
    ChannelIn,
    ChannelOut,
    DeliveryList,
    NoticeOut,
    RuleIn,
    RuleOut,
    SilenceIn,
    SilenceOut,
    WouldHaveOut,
)
from dashboard.audit.notes import changed, note
from dashboard.models.alarms import AlarmChannel, AlarmDelivery, AlarmRow, AlarmRule, AlarmSilence
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, NotPossible, caller

router = Router()
LIST_MAX = 200
READ, WRITE = Token(Permission.CLUSTER_READ), Token(Permission.ALARMS_WRITE)
CONFIG_READ, CONFIG = Token(Permission.CONFIG_READ), Token(Permission.CONFIG_WRITE)
Row = TypeVar("Row", bound=Model)


@router.get("", response={200: AlarmList} | REFUSALS, auth=READ, summary="List alarms", operation_id="list_alarms")
async def list_alarms(
    request: HttpRequest,
    only_open: bool = Query(False, description="only those that ring"),
    offset: int = Query(0, ge=0, le=1_000_000),
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> AlarmList:
    rows = AlarmRow.objects.filter(ended_at=None) if only_open else AlarmRow.objects.all()
    shown = rows.order_by(F("ended_at").desc(nulls_first=True), "-pk")[offset : offset + limit]
    return AlarmList(total=await rows.acount(), alarms=[AlarmOut.of(row) async for row in shown])


@router.get("/rules", response={200: list[RuleOut]} | REFUSALS, auth=READ, summary="List rules",
            operation_id="list_alarm_rules")  # fmt: skip
async def list_rules(request: HttpRequest) -> list[RuleOut]:
    return [RuleOut.of(row) for row in await sync_to_async(shown_rules)()]


@router.post("/rules", response={201: RuleOut} | REFUSALS, auth=WRITE, summary="Make a rule",
             operation_id="create_alarm_rule")  # fmt: skip
async def create_rule(request: HttpRequest, body: RuleIn) -> Any:
    saved = await _save_rule(body, None)
    note(request, "alarm rule made", saved.name, body.dict())
    return Status(201, saved)


@router.put("/rules/{int:rule_id}", response={200: RuleOut} | REFUSALS, auth=WRITE, summary="Change a rule",
            operation_id="change_alarm_rule")  # fmt: skip
async def change_rule(request: HttpRequest, rule_id: int, body: RuleIn) -> RuleOut:
    row = await _get(AlarmRule, rule_id, deleted_at=None)
    before = await sync_to_async(RuleOut.of)(row)
    saved = await _save_rule(body, row)
    note(request, "alarm rule changed", saved.name, changed(before.dict(), saved.dict()))
    return saved


@router.delete("/rules/{int:rule_id}", response={204: None} | REFUSALS, auth=WRITE,
            summary="Delete a rule, which ends its alerts",
            operation_id="delete_alarm_rule")  # fmt: skip
async def delete_rule(request: HttpRequest, rule_id: int) -> Any:
    row = await _get(AlarmRule, rule_id, deleted_at=None)
    await sync_to_async(editing.delete_rule)(row)
    note(request, "alarm rule deleted", row.name)
    return Status(204, None)


@router.get("/rules/{int:rule_id}/would-have-rung", response={200: WouldHaveOut} | REFUSALS, auth=READ,
            summary="How often a rule would have rung, by the history", operation_id="preview_alarm_rule")  # fmt: skip
async def would_have_rung(request: HttpRequest, rule_id: int) -> WouldHaveOut:
    row = await _get(AlarmRule, rule_id, deleted_at=None)
    if row.kind not in KINDS:
        raise NotPossible("This version does not know that kind of rule.")
    found = await sync_to_async(preview.would_have_rung)(for_book(row), time.time())
    last = None if found.last is None else datetime.fromtimestamp(found.last, UTC)
    return WouldHaveOut(times=found.times, days=preview.DAYS, hours=found.hours, last=last)


@router.get("/channels", response={200: list[ChannelOut]} | REFUSALS, auth=CONFIG_READ,
            summary="List channels; no secret is shown",
            operation_id="list_alarm_channels")  # fmt: skip
async def list_channels(request: HttpRequest) -> list[ChannelOut]:
    return [ChannelOut.of(row) async for row in AlarmChannel.objects.all()]


@router.post("/channels", response={201: ChannelOut} | REFUSALS, auth=CONFIG, summary="Make a channel",
             operation_id="create_alarm_channel")  # fmt: skip
async def create_channel(request: HttpRequest, body: ChannelIn) -> Any:
    if body.kind == "webhook" and not body.settings.get("secret"):
        raise FormProblem({"settings": ["secret is missing: REST gives none out, so it comes from you."]})
    row = await _save_channel(body, None)
    note(request, "alarm channel made", row.name, {"kind": row.kind} | editing.shown_settings(row))
    return Status(201, ChannelOut.of(row))


@router.put("/channels/{int:channel_id}", response={200: ChannelOut} | REFUSALS, auth=CONFIG,
            summary="Change a channel", operation_id="change_alarm_channel")  # fmt: skip
async def change_channel(request: HttpRequest, channel_id: int, body: ChannelIn) -> ChannelOut:
    before = await _get(AlarmChannel, channel_id)
    if before.kind != body.kind:
        raise FormProblem({"kind": ["A channel keeps its kind: make another one."]})
    was = editing.shown_facts(before)
    row = await _save_channel(body, before)
    note(request, "alarm channel changed", row.name, changed(was, editing.shown_facts(row)))
    return ChannelOut.of(row)


@router.delete("/channels/{int:channel_id}", response={204: None} | REFUSALS, auth=CONFIG,
            summary="Delete a channel and its deliveries",
            operation_id="delete_alarm_channel")  # fmt: skip
async def delete_channel(request: HttpRequest, channel_id: int) -> Any:
    row = await _get(AlarmChannel, channel_id)
    await row.adelete()
    note(request, "alarm channel deleted", row.name, {"kind": row.kind})
    return Status(204, None)


@router.post("/channels/{int:channel_id}/test", response={200: NoticeOut} | REFUSALS, auth=CONFIG,
             summary="Send a test now, and show the answer", operation_id="test_alarm_channel")  # fmt: skip
async def test_channel(request: HttpRequest, channel_id: int) -> NoticeOut:
    row = await _get(AlarmChannel, channel_id)
    delivery = await send_test(row, str(caller(request)["username"]))
    note(request, "alarm channel tested", row.name, {"result": delivery.state})
    return NoticeOut.of(delivery)


@router.get("/silences", response={200: list[SilenceOut]} | REFUSALS, auth=READ, summary="List silences",
            operation_id="list_alarm_silences")  # fmt: skip
async def list_silences(request: HttpRequest) -> list[SilenceOut]:
    return [SilenceOut.of(row) for row in await sync_to_async(silences_in_force)()]


@router.post("/silences", response={201: SilenceOut} | REFUSALS, auth=WRITE,
            summary="Hold notices back until a moment",
            operation_id="create_alarm_silence")  # fmt: skip
async def create_silence(request: HttpRequest, body: SilenceIn) -> Any:
    rule = await _get(AlarmRule, body.rule, deleted_at=None) if body.rule is not None else None
    until = body.until if body.until.tzinfo else body.until.replace(tzinfo=UTC)
    who = str(caller(request)["username"])
    try:
        row = await sync_to_async(editing.silence)(rule, body.pattern, body.reason, until, who)
    except editing.NotTaken as exc:
        raise FormProblem(exc.problems) from exc
    note(request, "alarms silenced", rule.name if rule else "every rule", body.dict())
    return Status(201, SilenceOut.of(row))


@router.delete("/silences/{int:silence_id}", response={204: None} | REFUSALS, auth=WRITE, summary="End a silence",
               operation_id="end_alarm_silence")  # fmt: skip
async def end_silence(request: HttpRequest, silence_id: int) -> Any:
    row = await _get(AlarmSilence, silence_id)
    await sync_to_async(editing.end_silence)(row)
    note(request, "silence ended", f"silence {silence_id}", {"about": row.pattern})
    return Status(204, None)


@router.get("/deliveries", response={200: DeliveryList} | REFUSALS, auth=READ,
            summary="Notifications that were sent, and how that went",
            operation_id="list_alarm_deliveries")  # fmt: skip
async def list_deliveries(
    request: HttpRequest,
    offset: int = Query(0, ge=0, le=1_000_000),
    limit: int = Query(50, ge=1, le=LIST_MAX),
) -> DeliveryList:
    rows = AlarmDelivery.objects.all()
    shown = [NoticeOut.of(row) async for row in rows[offset : offset + limit]]
    return DeliveryList(total=await rows.acount(), deliveries=shown)


# ---- helpers


async def _get(model: type[Row], key: int, **also: Any) -> Row:
    row: Row | None = await model._default_manager.filter(pk=key, **also).afirst() if 0 < key < 1 << 63 else None
    if row is None:
        raise NotPossible("There is none with this id.", status=404)
    return row


async def _save_rule(body: RuleIn, row: AlarmRule | None) -> RuleOut:
    def save() -> RuleOut:
        return RuleOut.of(editing.save_rule(body.values(), row))

    try:
        return await sync_to_async(save)()
    except editing.NotTaken as exc:
        raise FormProblem(exc.problems) from exc


async def _save_channel(body: ChannelIn, row: AlarmChannel | None) -> AlarmChannel:
    try:
        return await sync_to_async(editing.save_channel)(body.name, body.kind, body.settings, body.is_on, row)
    except editing.NotTaken as exc:
        raise FormProblem(exc.problems) from exc
