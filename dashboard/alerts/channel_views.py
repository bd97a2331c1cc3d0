"""Channels of alarms: mail, webhook, chats. Their secrets come in and never go out."""

from __future__ import annotations

import json
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages as notes
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.http import urlencode
from django.utils.translation import gettext

from dashboard.access.permissions import ACT, FORM, Permission, requires
from dashboard.access.tokens import shown_once
from dashboard.alerts import editing
from dashboard.alerts.alert_rows import address_of_page
from dashboard.alerts.forms import ChannelForm
from dashboard.alerts.sending.delivery import Sender
from dashboard.alerts.sending.notices import TEST, notice_of_test, text_of
from dashboard.alerts.sending.outgoing import request_for, without_secrets
from dashboard.audit.notes import changed, note
from dashboard.models.alerts import AlertChannel, AlertDelivery, ChannelKind


@requires(Permission.CONFIG_WRITE, FORM)
async def create(request: HttpRequest, kind: str) -> HttpResponse:
    if kind not in ChannelKind.values:
        raise Http404
    return await _edit(request, kind, None)


@requires(Permission.CONFIG_WRITE, FORM)
async def channel(request: HttpRequest, channel_id: int) -> HttpResponse:
    row = await _channel(channel_id)
    return await _edit(request, row.kind, row)


@requires(Permission.CONFIG_WRITE, ACT)
async def test(request: HttpRequest, channel_id: int) -> HttpResponse:
    """Send one notice now, and show the request and the answer."""
    row = await _channel(channel_id)
    delivery = await send_test(row, str(request.principal.user))  # type: ignore[attr-defined]
    note(request, "alert channel tested", row.name, {"result": delivery.state})
    context = {"channel": row, "delivery": delivery, "request_text": _request_text(row, delivery)}
    return render(request, "alerts/test.html", context)


@requires(Permission.CONFIG_WRITE, FORM)
async def delete(request: HttpRequest, channel_id: int) -> HttpResponse:
    """What is lost; then the button."""
    row = await _channel(channel_id)
    if request.method == "POST":
        await row.adelete()
        note(request, "alert channel deleted", row.name, {"kind": row.kind})
        notes.success(request, gettext("The channel “%(name)s” is deleted.") % {"name": row.name})
        return redirect("alerts")
    rules = [rule.name async for rule in row.alertrule_set.filter(deleted_at=None)]
    return render(request, "alerts/channel_delete.html", {"channel": row, "rules": rules})


async def send_test(row: AlertChannel, who: str) -> AlertDelivery:
    """One attempt, which stands in the log like others."""
    now = timezone.now()
    with translation.override(row.language):
        title, notice = gettext("A test"), notice_of_test(who, address_of_page("/alerts"))
    delivery = AlertDelivery(
        channel=row,
        what=TEST,
        title=title,
        made_at=now,
        due_at=now,
        state="failed",
        notice=notice.to_json(),
    )
    await delivery.asave()
    sender = Sender()
    try:
        await sender.attempt(delivery, row, may_retry=False)
    finally:
        sender.close()
    return delivery


async def _edit(request: HttpRequest, kind: str, row: AlertChannel | None) -> HttpResponse:
    initial: dict[str, Any] = {}
    if row is not None:
        initial = {"name": row.name, "is_on": row.is_on} | editing.shown_settings(row)
    form = ChannelForm(
        request.POST if request.method == "POST" else None, kind=kind, has_one=row is not None, initial=initial
    )
    if request.method == "POST" and form.is_valid():
        known = form.cleaned_data
        was = editing.shown_facts(row) if row is not None else {}
        try:
            saved = await sync_to_async(editing.save_channel)(known["name"], kind, form.settings(), known["is_on"], row)
        except editing.NotTaken as exc:
            form.refuse(exc)
        else:
            shown = editing.shown_facts(saved)
            details = changed(was, shown) if row is not None else {"kind": kind} | shown
            note(request, "alert channel changed" if row else "alert channel created", saved.name, details)
            secret = saved.known_settings().get("secret") if kind == ChannelKind.WEBHOOK else None
            if secret and not known.get("secret") and row is None:
                user = request.principal.user  # type: ignore[attr-defined]
                made = urlencode({"made": shown_once.put(user, secret)})
                return redirect(f"{reverse('alert-channel', args=[saved.pk])}?{made}")
            notes.success(request, gettext("The channel “%(name)s” is saved. Send a test.") % {"name": saved.name})
            return redirect("alerts")
    secret = None
    if request.method == "GET" and "made" in request.GET:
        secret = shown_once.take(request.principal.user, request.GET["made"])  # type: ignore[attr-defined]
    context = {"form": form, "channel": row, "kind": ChannelKind(kind), "secret": secret}
    return render(request, "alerts/channel.html", context, status=422 if request.method == "POST" else 200)


async def _channel(channel_id: int) -> AlertChannel:
    row = await AlertChannel.objects.filter(pk=channel_id).afirst()
    if row is None:
        raise Http404
    return row


def _request_text(row: AlertChannel, delivery: AlertDelivery) -> str:
    """What was sent, without its secrets."""
    known = row.known_settings()
    if row.kind == ChannelKind.MAIL:
        return f"To: {known['recipients']}\nFrom: {known['sender']}\n\n{text_of(delivery.notice)}"
    sent = request_for(row.kind, known, delivery.notice, time.time(), delivery.number)
    host = editing.shown_settings(row)["host"]
    headers = "\n".join(f"{name}: {value}" for name, value in sent.headers.items() if "Signature" not in name)
    body = json.loads(sent.body)
    body.pop("sign", None)
    text = f"POST {host}\n{headers}\n\n{json.dumps(body, ensure_ascii=False, indent=2)}"
    return without_secrets(text.replace(host, "\0"), known).replace("\0", host)
