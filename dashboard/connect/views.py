"""Connect an application: four ticks, a program in its language, one message from here, and what is wrong."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from django.conf import settings as django_settings
from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_noop

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import note
from dashboard.cluster.errors import TopicExists, TopicNotFound
from dashboard.cluster.gateway import Gateway, gateway
from dashboard.connect.checks import ERROR_CHARS_MAX, examine, explain
from dashboard.connect.looking import current_ticks, proxy_endpoints
from dashboard.status.board import board
from gantrymq.client.results import SendResult
from gantrymq.message.model import Message

LANGUAGES = {"python": "Python", "java": "Java", "go": "Go", "node": "Node"}
PROGRAMS = {"4": {"python": "Python", "python-pop": "Python (PopConsumer)"} | LANGUAGES, "5": LANGUAGES}
PROTOCOLS = {"4": gettext_noop("Clients of RocketMQ 4"), "5": gettext_noop("Clients of RocketMQ 5 (gRPC)")}


DEMO_TOPIC = "demo"
DEMO_QUEUES = 8


async def send_demo(gateway: Gateway, text: str) -> SendResult:
    """Send it; the topic is made if it is not there. Raises GatewayError."""
    message = Message(DEMO_TOPIC, text.encode(), tags="demo")
    try:
        return await gateway.messages.send(message)
    except TopicNotFound:
        with contextlib.suppress(TopicExists):  # another one was quicker
            await gateway.topics.create(DEMO_TOPIC, queues=DEMO_QUEUES)
    return await gateway.messages.send(message)


@requires(Permission.CLUSTER_READ)
async def connect(request: HttpRequest) -> HttpResponse:
    """As the address says: protocol, lang, and error, what a client printed. The ticks alone for a page that asks
    again."""
    ticks = await current_ticks(gateway())
    if request.headers.get("HX-Target") == "ticks":
        return render(request, "connect/_ticks.html", _ticks(ticks))
    endpoints = await proxy_endpoints(gateway())
    checks = await examine(gateway(), board.snapshot, endpoints)
    language = request.GET.get("lang", "python")
    error = request.GET.get("error", "").strip()[:ERROR_CHARS_MAX]
    appliance = django_settings.APPLIANCE
    protocol = "5" if request.GET.get("protocol") == "5" else "4"
    context: dict[str, Any] = _ticks(ticks) | {
        "programs": PROGRAMS[protocol],
        "program": language if language in PROGRAMS[protocol] else "python",
        "protocols": {key: gettext(label) for key, label in PROTOCOLS.items()},
        "protocol": protocol,
        "endpoints": endpoints,
        "endpoint": ";".join(endpoints),
        "namesrv_address": appliance.namesrv_address,
        "demo_topic": DEMO_TOPIC,
        "has_accounts": appliance.accounts,
        "needs_tls": appliance.tls_mode == "enforcing",
        "checks": checks,
        "error": error,
        "meanings": explain(error) if error else [],
        "send_body": {"body": "hello"},
    }
    suffix = "5" if protocol == "5" else ""
    context["program_template"] = f"connect/_{context['program']}{suffix}.html"
    return render(request, "connect/connect.html", context)


@requires(Permission.MESSAGES_SEND, ACT)
async def send_one(request: HttpRequest) -> HttpResponse:
    """One message to the demo topic, which is made if it is not there."""
    result = await send_demo(gateway(), f"hello from the dashboard, {time.strftime('%H:%M:%S', time.gmtime())} UTC")
    note(request, "message sent", DEMO_TOPIC, {"message": result.msg_id})
    notes.success(request, gettext("Sent to %(topic)s: %(msg_id)s") % {"topic": DEMO_TOPIC, "msg_id": result.msg_id})
    return redirect("connect")


def _ticks(ticks: Any) -> dict[str, Any]:
    return {"ticks": ticks, "shape": "".join("1" if one.is_done else "0" for one in ticks)}
