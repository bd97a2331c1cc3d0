"""The pages of the name servers' key-value table: a namespace with its entries, and one entry to change or remove."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages as notes
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from dashboard.access.permissions import FORM, Permission, requires
from dashboard.audit.notes import note_nothing
from dashboard.language.sentences import gettext
from dashboard.name_servers.entries import ORDER_TOPICS, entries_of, no_entry, put, remove, value_of
from dashboard.name_servers.form import EntryForm, NamespaceForm, NewValueForm, PlaceForm, TypedKeyForm


@requires(Permission.CONFIG_WRITE, FORM)
async def entries(request: HttpRequest) -> HttpResponse:
    """GET: the entries of ?namespace=. POST: a new one; what is there already is changed on its own page."""
    wanted = request.GET.get("namespace", "").strip() or ORDER_TOPICS
    is_sent = request.method == "POST"
    form = EntryForm(request.POST if is_sent else None, initial={"namespace": wanted})
    chosen = NamespaceForm({"namespace": wanted})
    there = ""
    if is_sent and form.is_valid():
        given = form.cleaned_data
        wanted = given["namespace"]
        if await value_of(wanted, given["key"]) is None:
            await put(request, wanted, given["key"], given["value"])
            notes.success(request, gettext("%(key)s is set.") % {"key": given["key"]})
            return redirect(_address("name-server-entries", namespace=wanted))
        there = _address("name-server-entry", namespace=wanted, key=given["key"])
        form.add_error("key", gettext("This entry exists already. Nothing was changed."))
    rows = await entries_of(wanted) if chosen.is_valid() else []
    if is_sent:
        note_nothing(request)
    shown = [(key, value, _address("name-server-entry", namespace=wanted, key=key)) for key, value in rows]
    context: dict[str, Any] = {"namespace": wanted, "rows": shown, "form": form, "chosen": chosen, "there": there}
    return render(
        request, "name_servers/entries.html", context, status=422 if is_sent or not chosen.is_valid() else 200
    )


@requires(Permission.CONFIG_WRITE, FORM)
async def entry(request: HttpRequest) -> HttpResponse:
    """One entry: another value, or away with it (`do` says which), once its key was typed."""
    place = PlaceForm(request.GET)
    if not place.is_valid():
        raise Http404
    namespace, key = place.cleaned_data["namespace"], place.cleaned_data["key"]
    sent = {name: request.POST if request.POST.get("do") == name else None for name in ("put", "remove")}
    value = await value_of(namespace, key)
    if value is None:
        raise no_entry(namespace, key)
    new = NewValueForm(sent["put"], name=key, undone="changed", initial={"value": value}, auto_id="put_%s")
    away = TypedKeyForm(sent["remove"], name=key, auto_id="remove_%s")
    is_as_seen = request.method != "POST" or request.POST.get("seen") == value
    if is_as_seen and (new.is_valid() or away.is_valid()):
        await _do(request, namespace, key, new.cleaned_data["value"] if new.is_bound else None)
        return redirect(_address("name-server-entries", namespace=namespace))
    if request.method == "POST":
        note_nothing(request)
    context = {
        "namespace": namespace,
        "key": key,
        "value": value,
        "new": new,
        "away": away,
        "is_as_seen": is_as_seen,
        "back": _address("name-server-entries", namespace=namespace),
        "api_away": reverse("api:remove_kv_entry") + "?" + urlencode({"namespace": namespace, "key": key}),
    }
    return render(request, "name_servers/entry.html", context, status=422 if request.method == "POST" else 200)


async def _do(request: HttpRequest, namespace: str, key: str, after: str | None) -> None:
    """Another value, or none any more. Raises GatewayError."""
    if after is None:
        await remove(request, namespace, key)
        notes.success(request, gettext("%(key)s is removed.") % {"key": key})
    else:
        await put(request, namespace, key, after)
        notes.success(request, gettext("%(key)s is set.") % {"key": key})


def _address(name: str, **query: str) -> str:
    return f"{reverse(name)}?{urlencode(query)}"
