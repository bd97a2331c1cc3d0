"""Definitions: the export, and an import in two steps, of which the second does what the first showed.

The accounts with which clients sign at the brokers have a form: it makes a document, whose preview says who loses what.
"""

from __future__ import annotations

import shlex
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.definitions.api import facts_of
from dashboard.definitions.document import DocumentRefused, as_text
from dashboard.definitions.forms import AccountForm, ImportForm
from dashboard.definitions.importing import exported, imported, planned
from dashboard.definitions.plan import Plan
from dashboard.definitions.reading import found
from dashboard.forms.base import TypedNameForm
from dashboard.http.client_address import client_address
from dashboard.http.request_ids import request_id
from dashboard.models.audit import Way
from dashboard.topics.changes import Asker

FILE = "definitions.yaml"


async def export(request: HttpRequest) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{FILE}"'}
    return HttpResponse(await exported(gateway()), content_type="application/yaml; charset=utf-8", headers=headers)


async def definitions(request: HttpRequest) -> HttpResponse:
    """The form; a document posted without the digest of its preview is only looked at."""
    note_nothing(request)
    form = ImportForm(request.POST) if request.method == "POST" else ImportForm()
    if form.is_valid():
        return await preview(request, form.cleaned_data["text"], delete=form.cleaned_data["delete"])
    context = {"form": form, "lines": _lines(request, delete=False)}
    return render(request, "definitions/definitions.html", context, status=422 if form.is_bound else 200)


async def preview(request: HttpRequest, text: str, *, delete: bool) -> HttpResponse:
    """What the document changes; with the digest of such a preview the change is made."""
    form = ImportForm({"text": text, "delete": delete})
    context: dict[str, Any] = {"form": form, "text": text, "delete": delete, "lines": _lines(request, delete=delete)}
    try:
        plan = await planned(gateway(), text, delete=delete)
        typed = _typed(request, plan)
        if "digest" in request.POST and (typed is None or typed.is_valid()):
            return await _import(request, context, text, delete=delete)
    except (DocumentRefused, GatewayError) as exc:
        form.add_error(None, str(exc))
        return render(request, "definitions/definitions.html", context, status=422)
    context |= {"plan": plan, "typed": typed, "failing": sum(bool(one.refusal) for one in plan.now)}
    is_refused = typed is not None and typed.is_bound
    return render(request, "definitions/definitions.html", context, status=422 if is_refused else 200)


async def _import(request: HttpRequest, context: dict[str, Any], text: str, *, delete: bool) -> HttpResponse:
    asker = Asker(str(request.user), Way.PAGE, client_address(request), request_id())
    done = await imported(gateway(), text, asker, delete=delete, digest=request.POST["digest"])
    note(request, "definitions imported", "", facts_of(done))
    context |= {"done": done, "failed": sum(not one.is_done for one in done.dealt), "form": ImportForm()}
    return render(request, "definitions/definitions.html", context)


def _typed(request: HttpRequest, plan: Plan) -> TypedNameForm | None:
    """The safety catch of an import that deletes: how much, typed."""
    if not plan.deleted:
        return None
    given = request.POST if "digest" in request.POST else None
    typed = TypedNameForm(given, name=str(plan.deleted), undone="changed")
    typed.fields["typed_name"].label = gettext("How many are deleted")
    return typed


def _lines(request: HttpRequest, *, delete: bool) -> list[str]:
    there = ["--dashboard", f"{request.scheme}://{request.get_host()}"]
    words = (["export"], ["diff", FILE], ["apply", FILE, *(["--delete"] if delete else [])])
    lines = [shlex.join(["gantry", "admin", "definitions", *line, *there]) for line in words]
    return [f"{lines[0]} > {FILE}", *lines[1:]]


async def accounts(request: HttpRequest) -> HttpResponse:
    """All accounts, and a form for a new one, or for that of `?key=`."""
    note_nothing(request)
    there = await found(gateway(), ("accounts",))
    items = there.items.get("accounts", {})
    key = request.GET.get("key", "")
    if request.method == "POST":
        form = AccountForm(request.POST, item=items.get(request.POST.get("access_key", "")))
        if form.is_valid():
            return await preview(request, as_text(form.document()), delete=False)
    else:
        form = AccountForm(initial={"access_key": key, **items.get(key, {})}, item=items.get(key))
    rows = [(key, item, key in there.partial) for key, item in sorted(items.items())]
    context = {"rows": rows, "why_not": there.why_not.get("accounts"), "form": form, "key": key if key in items else ""}
    return render(request, "definitions/accounts.html", context, status=422 if form.is_bound else 200)
