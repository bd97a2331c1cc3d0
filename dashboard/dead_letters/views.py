"""Dead letters: groups that have some, one group's with what can be done about them, runs, and discarding them all."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from dashboard.access.permissions import ACT, FORM, Permission, requires
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.cluster.message_values import MessageLine
from dashboard.dead_letters import letters
from dashboard.dead_letters import runs as book
from dashboard.dead_letters.discard import discard as discard_all
from dashboard.dead_letters.forms import DiscardForm, PutBackForm
from dashboard.dead_letters.letters import Step, grouped
from dashboard.dead_letters.put_back import RATE_DEFAULT, TO_GROUP, PutBackStep, note_step, put_backs
from dashboard.forms.rest_bodies import put_back_body
from dashboard.forms.shell_commands import put_back_words
from dashboard.http.paging import page_of
from dashboard.messages.export import MESSAGES_MAX
from dashboard.messages.forms import MessageSearchForm
from dashboard.models import PutBackRow, PutBackRun, PutBackState
from dashboard.status.metric import shape_of
from gantrymq.message.topics import dlq_topic

PAGE_GROUPS = 50
SAMPLES = 8
RESULTS_SHOWN = 50
RANGES = ("1 h", "6 h", "24 h", "7 d")


@requires(Permission.MESSAGES_READ)
async def dead_letters(request: HttpRequest) -> HttpResponse:
    """The groups as the address says: q, page."""
    wanted = request.GET.get("q", "").strip()
    known, failures = await letters.names(gateway())
    page = page_of(request, [name for name in known if wanted.lower() in name.lower()], PAGE_GROUPS)
    rows = await letters.summaries(gateway(), page.rows)
    context = {
        "groups": rows, "failures": failures, "q": wanted, "total": len(known), "page": page.number,
        "pages": page.pages,
    }  # fmt: skip
    return render(request, "dead_letters/dead_letters.html", context)


@requires(Permission.MESSAGES_READ)
async def group(request: HttpRequest, name: str) -> HttpResponse:
    """A group's letters by cause; the address holds what is looked for (q, since, until) and older, a cursor."""
    asked = MessageSearchForm(request.GET.dict())
    step = Step(begin="")
    detail = await letters.detail_of(gateway(), name)
    if asked.is_valid():
        step = await letters.look(gateway(), detail, asked.search(), older=request.GET.get("older", ""))
    chosen = {key: value for key in ("q", "since", "until") if (value := request.GET.get(key, ""))}
    done = PutBackRow.objects.filter(group=name)
    context = {
        "group": name, "topic": dlq_topic(name), "detail": detail, "asked": asked, "step": step, "ranges": RANGES,
        "causes": grouped(step.letters), "lines": [MessageLine.of(letter) for letter in step.letters[:SAMPLES]],
        "is_asked": bool(request.GET.keys() & {"q", "since", "until"}), "form": PutBackForm(),
        "put_back_body": put_back_body(chosen) | {"target": TO_GROUP, "rate": RATE_DEFAULT},
        "put_back_words": put_back_words(name, chosen),
        "done_count": await done.acount(), "failures": (*detail.failures, *step.failures),
        "results": [row async for row in done.order_by("-at", "-pk")[:RESULTS_SHOWN]],
    } | await runs_context(name)  # fmt: skip
    return render(request, "dead_letters/group.html", context, status=200 if asked.is_valid() else 422)


@requires(Permission.MESSAGES_SEND, ACT)
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
        note_step(request, name, step)
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


CAUSES_SHOWN = 8


@requires(Permission.TOPICS_WRITE, FORM)
async def discard(request: HttpRequest, name: str) -> HttpResponse:
    """The effect in numbers; POST with the count does it."""
    detail = await letters.detail_of(gateway(), name)
    form = DiscardForm(request.POST if request.method == "POST" else None, stored=detail.stored)
    if request.method == "POST" and form.is_valid():
        count = await discard_all(gateway(), name, form.cleaned_data["letters"])
        note(request, "dead letters discarded", name, {"letters": count})
        notes.success(
            request, (gettext("%(count)s dead letters of %(name)s discarded.") % {"count": count, "name": name})
        )
        return redirect("dead-letters")
    everything = MessageSearchForm({})
    everything.full_clean()
    step = await letters.look(gateway(), detail, everything.search())
    sent = await PutBackRow.objects.filter(group=name, state=PutBackState.SENT).acount()
    context = {
        "group": name, "detail": detail, "form": form, "step": step, "causes": grouped(step.letters)[:CAUSES_SHOWN],
        "sent": sent, "export_max": MESSAGES_MAX, "stored_text": str(detail.stored), "failures": detail.failures,
        "discard_words": ["dead-letters", "discard", name, "--letters", str(detail.stored)],
    }  # fmt: skip
    return render(request, "dead_letters/discard.html", context, status=422 if request.method == "POST" else 200)


RUNS_SHOWN = 5
LETTERS_SHOWN = 50


@requires(Permission.MESSAGES_READ)
async def runs(request: HttpRequest, name: str) -> HttpResponse:
    """The newest runs of a group: the fragment that a page asks for again while one is running."""
    return render(request, "dead_letters/_runs.html", {"group": name} | await runs_context(name))


async def runs_context(name: str) -> dict[str, Any]:
    """The newest runs, and what became of the letters of the newest one."""
    rows = [row async for row in PutBackRun.objects.filter(group=name).order_by("-started_at", "-pk")[:RUNS_SHOWN]]
    newest = PutBackRow.objects.filter(run=rows[0]).order_by("-at", "-pk") if rows else PutBackRow.objects.none()
    return {
        "runs": rows, "is_running": any(row.is_running for row in rows),
        "runs_shape": shape_of(*(f"{row.pk} {row.state}" for row in rows)),
        "run_letters": [row async for row in newest[:LETTERS_SHOWN]],
    }  # fmt: skip


@requires(Permission.MESSAGES_SEND, ACT)
async def start(request: HttpRequest, name: str) -> HttpResponse:
    """Begin, from where a count began; the page then shows how far it is."""
    form = PutBackForm(request.POST)
    if not form.is_valid():
        return redirect_with_problem(request, name, next(iter(form.problems().values()))[0])
    username, given = str(request.user), form.cleaned_data
    run = await book.start(name, form.wish(), older=given["older"], wanted=given["wanted"], username=username)
    note(request, "dead letters: run started", name, book.facts_of(run))
    return to_runs(name)


@requires(Permission.MESSAGES_SEND, ACT)
async def do(request: HttpRequest, name: str, number: str) -> HttpResponse:
    """Stop it, or let it go on: the field `what` says which."""
    is_stop, username = request.POST.get("what") == "stop", str(request.user)
    run = await (book.stop(name, int(number), username) if is_stop else book.go_on(name, int(number), username))
    action = "dead letters: run stopped" if is_stop else "dead letters: run resumed"
    note(request, action, name, book.facts_of(run))
    return to_runs(name)


def to_runs(name: str) -> HttpResponse:
    response = redirect("dead-letters-group", name)
    response["Location"] += "#resend-runs"
    return response


def redirect_with_problem(request: HttpRequest, name: str, problem: str) -> HttpResponse:
    """Back to the page, which says why nothing was begun."""
    note_nothing(request)
    notes.error(request, (gettext("Nothing was resent: %(problem)s") % {"problem": problem}))
    return redirect("dead-letters-group", name)
