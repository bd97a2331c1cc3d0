"""Dead letters: the groups that have some, and one group's by cause; counting those that are to be put back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.audit.notes import note_nothing
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_values import MessageLine
from dashboard.dead_letters import letters
from dashboard.dead_letters.causes import grouped
from dashboard.dead_letters.forms import PutBackForm
from dashboard.dead_letters.letters import Step
from dashboard.dead_letters.put_back import RATE_DEFAULT, TO_GROUP, PutBackStep, log_step, put_backs
from dashboard.dead_letters.run_views import runs_context
from dashboard.forms.shell_commands import put_back_words
from dashboard.http.error_pages import gateway_error
from dashboard.http.paging import page_of
from dashboard.messages.search_form import MessageSearchForm
from dashboard.models import PutBackRow
from gantrymq.message.topics import dlq_topic

PAGE_GROUPS = 50
SAMPLES = 8
RESULTS_SHOWN = 50
RANGES = ("1 h", "6 h", "24 h", "7 d")


@requires(Permission.MESSAGES_READ)
@require_safe
async def dead_letters(request: HttpRequest) -> HttpResponse:
    """The groups as the address says: q, page."""
    wanted = request.GET.get("q", "").strip()
    try:
        known, failures = await letters.names(gateway())
        page = page_of(request, [name for name in known if wanted.lower() in name.lower()], PAGE_GROUPS)
        rows = await letters.summaries(gateway(), page.rows)
    except GatewayError as exc:
        return gateway_error(request, exc)
    context = {
        "groups": rows, "failures": failures, "q": wanted, "total": len(known), "page": page.number,
        "pages": page.pages,
    }  # fmt: skip
    return render(request, "dead_letters/dead_letters.html", context)


@requires(Permission.MESSAGES_READ)
@require_safe
async def group(request: HttpRequest, name: str) -> HttpResponse:
    """A group's letters by cause; the address holds what is looked for (q, since, until) and older, a cursor."""
    asked = MessageSearchForm(request.GET.dict())
    step = Step(begin="")
    try:
        detail = await letters.detail_of(gateway(), name)
        if asked.is_valid():
            step = await letters.look(gateway(), detail, asked.search(), older=request.GET.get("older", ""))
    except GatewayError as exc:
        return gateway_error(request, exc)
    chosen = {key: value for key in ("q", "since", "until") if (value := request.GET.get(key, ""))}
    done = PutBackRow.objects.filter(group=name)
    context = {
        "group": name, "topic": dlq_topic(name), "detail": detail, "asked": asked, "step": step, "ranges": RANGES,
        "causes": grouped(step.letters), "lines": [MessageLine.of(letter) for letter in step.letters[:SAMPLES]],
        "is_asked": bool(request.GET.keys() & {"q", "since", "until"}), "form": PutBackForm(),
        "put_back_body": chosen | {"to": TO_GROUP, "rate": RATE_DEFAULT},
        "put_back_words": put_back_words(name, chosen),
        "done_count": await done.acount(), "failures": (*detail.failures, *step.failures),
        "results": [row async for row in done.order_by("-at", "-pk")[:RESULTS_SHOWN]],
    } | await runs_context(name)  # fmt: skip
    return render(request, "dead_letters/group.html", context, status=200 if asked.is_valid() else 422)


@requires(Permission.MESSAGES_SEND)
@require_POST
async def put_back(request: HttpRequest, name: str) -> HttpResponse:
    """One step, counting (dry_run) or putting back, for the script; its answer says where to go on."""
    form = PutBackForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"detail": gettext("Some fields are not valid."), "fields": form.problems()}, status=422)
    username = str(request.user)
    try:
        detail = await letters.detail_of(gateway(), name)
        step = await put_backs.step(
            gateway(), name, detail, form.wish(), older=form.cleaned_data["older"], username=username
        )
    except GatewayError as exc:
        return JsonResponse({"detail": str(exc)}, status=exc.status)
    if not form.cleaned_data["dry_run"]:
        log_step(request, name, step, {"username": username})
    else:
        note_nothing(request)
    return JsonResponse(told(step))


def told(step: PutBackStep) -> dict[str, Any]:
    """The step as the script takes it."""
    results = [asdict(result) for result in step.results]
    return {
        "begin": step.begin, "older": step.older, "scanned": step.scanned, "matched": step.matched,
        "results": results, "troubles": step.troubles,
    }  # fmt: skip
