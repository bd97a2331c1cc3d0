"""A group's dead letters discarded: what would be lost, their export, then how many there are, typed."""

from __future__ import annotations

import logging

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from dashboard.access.permissions import Permission, requires
from dashboard.audit.notes import note
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.dead_letters import letters
from dashboard.dead_letters.causes import grouped
from dashboard.dead_letters.discard import discard as discard_all
from dashboard.dead_letters.forms import DiscardForm
from dashboard.http.error_pages import gateway_error
from dashboard.messages.export import MESSAGES_MAX
from dashboard.messages.search_form import MessageSearchForm
from dashboard.models import PutBackRow, PutBackState

logger = logging.getLogger(__name__)

CAUSES_SHOWN = 8


@requires(Permission.TOPICS_WRITE)
@require_http_methods(["GET", "HEAD", "POST"])
async def discard(request: HttpRequest, name: str) -> HttpResponse:
    """The effect in numbers; POST with the count does it."""
    try:
        detail = await letters.detail_of(gateway(), name)
        form = DiscardForm(request.POST if request.method == "POST" else None, stored=detail.stored)
        if request.method == "POST" and form.is_valid():
            count = await discard_all(gateway(), name, form.cleaned_data["letters"])
            note(request, "dead letters discarded", name, {"letters": count})
            facts = {"event": "dead_letters_discarded", "group": name, "letters": count, "username": str(request.user)}
            logger.info("dead letters discarded", extra=facts)
            notes.success(
                request, (gettext("%(count)s dead letters of %(name)s discarded.") % {"count": count, "name": name})
            )
            return redirect("dead-letters")
        everything = MessageSearchForm({})
        everything.full_clean()
        step = await letters.look(gateway(), detail, everything.search())
        sent = await PutBackRow.objects.filter(group=name, state=PutBackState.SENT).acount()
    except GatewayError as exc:
        return gateway_error(request, exc)
    context = {
        "group": name, "detail": detail, "form": form, "step": step, "causes": grouped(step.letters)[:CAUSES_SHOWN],
        "sent": sent, "export_max": MESSAGES_MAX, "stored_text": str(detail.stored), "failures": detail.failures,
        "discard_words": ["dead-letters", "discard", name, "--letters", str(detail.stored)],
    }  # fmt: skip
    return render(request, "dead_letters/discard.html", context, status=422 if request.method == "POST" else 200)
