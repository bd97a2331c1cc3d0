"""Automatic failover of a broker, as a part of its “Master” page: what is on record, and how a person pauses it."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import note_nothing, tell_trouble
from dashboard.brokers.master_change import pause_failover, resume_failover
from dashboard.brokers.succession_form import PauseForm, ResumeForm
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from gantrymq.client.admin.failover import FailoverStatus


async def failover_context(name: str) -> dict[str, Any]:
    """What templates/brokers/_failover.html shows."""
    return {
        "failover": await _failover(name),
        "pause_form": PauseForm(auto_id="pause_%s"),
        "resume_form": ResumeForm(auto_id="resume_%s"),
        "pause_words": ["ha", "pause", name, "--why", "…"],
        "resume_words": ["ha", "resume", name],
        "now": time.time(),
    }


async def _failover(name: str) -> FailoverStatus | None:
    """What is on record of it; None where no broker tells of etcd."""
    try:
        told = await gateway().succession.failover(name)
    except GatewayError:  # a broker that knows no such request; members that do not answer are shown as such
        return None
    return told if told.is_automatic or told.master else None


@requires(Permission.CONFIG_WRITE, ACT)
async def pause(request: HttpRequest, name: str) -> HttpResponse:
    """No member becomes the master by itself, until it is resumed."""
    form = PauseForm(request.POST)
    if form.is_valid():
        why, until_ms = form.cleaned_data["why"], form.until_ms(time.time())
        await _tried(request, pause_failover(gateway(), request, name, str(request.user), why, until_ms))
    else:
        note_nothing(request)
        notes.error(request, " ".join(text for texts in form.problems().values() for text in texts))
    return redirect("broker-succession", name)


@requires(Permission.CONFIG_WRITE, ACT)
async def resume(request: HttpRequest, name: str) -> HttpResponse:
    """The pause ends."""
    form = ResumeForm(request.POST)
    is_forced = form.is_valid() and form.cleaned_data["force"]
    await _tried(request, resume_failover(gateway(), request, name, str(request.user), is_forced=is_forced))
    return redirect("broker-succession", name)


async def _tried(request: HttpRequest, change: Awaitable[None]) -> None:
    """Make the change; what speaks against it is said on the page that is shown next."""
    try:
        await change
        notes.success(request, gettext("Done."))
    except GatewayError as exc:
        tell_trouble(request, str(exc))
