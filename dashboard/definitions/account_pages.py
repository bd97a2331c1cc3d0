"""The accounts with which clients sign at the brokers. A change is a document of definitions: its preview says what
differs and who loses what, and the page of definitions does it.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.audit.notes import note_nothing
from dashboard.cluster.gateway import gateway
from dashboard.definitions.document import as_text
from dashboard.definitions.forms import AccountForm
from dashboard.definitions.pages import preview
from dashboard.definitions.reading import found


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
