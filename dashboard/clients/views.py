"""Connected clients: the list, and the end of one's connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings as django_settings
from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_noop

from dashboard.access.permissions import FORM, Permission, requires
from dashboard.audit.notes import note
from dashboard.clients.listing import client_book, find_client
from dashboard.clients.listing import disconnect as close_connections
from dashboard.clients.selection import SORTS, in_order, select
from dashboard.clients.values import ClientListing, ConnectedClient
from dashboard.cluster import units
from dashboard.cluster.gateway import gateway
from dashboard.http.paging import head_cell, page_of
from dashboard.language.sentences import gettext
from dashboard.status.metric import Metrics, shape_of

PAGE_ROWS = 50


NOT_TOLD = gettext_noop("only GantryMQ's brokers report it")


def client_metrics(rows: Sequence[ConnectedClient], listing: ClientListing) -> Metrics:
    """By the client's name."""
    metrics = Metrics(now=listing.at)
    for one in rows:
        tells_less = any(name in listing.telling_less for name in one.brokers)
        why = gettext(NOT_TOLD) if tells_less else gettext("known at the next sample")
        since = None if one.since is None else listing.at - one.since
        metrics.put(f"client.{one.name}.rate", units.rate(one.rate), listing.at, why)
        metrics.put(f"client.{one.name}.since", units.duration(since), listing.at, why)
    shown = (
        f"{one.name} {one.language} {one.version} {one.is_twice} {one.producer_groups} {one.consumer_groups} "
        f"{[(each.broker, each.address, each.account) for each in one.connections]}"
        for one in rows
    )
    failures = (f"{failure.what} {failure.reason}" for failure in listing.failures)
    metrics.shape = shape_of(*shown, "|", str(len(listing.clients)), *failures)
    return metrics


@requires(Permission.CLUSTER_READ)
async def clients(request: HttpRequest) -> HttpResponse:
    """The list as the address says: q, show=tools, twice, sort, down, page."""
    template = "clients/_list.html" if request.headers.get("HX-Target") == "client-list" else "clients/clients.html"
    return render(request, template, await _context(request))


@requires(Permission.CLIENTS_WRITE, FORM)
async def disconnect(request: HttpRequest) -> HttpResponse:
    """What it means (GET), and doing it (POST): the field `id` names the client."""
    client_id = (request.POST if request.method == "POST" else request.GET).get("id", "")
    client = await find_client(gateway(), client_id)
    if request.method != "POST":
        return render(request, "clients/disconnect.html", {"client": client, "body": {"client_id": client_id}})
    closed = await close_connections(gateway(), client)
    note(request, "client disconnected", client_id, {name: f"{count} closed" for name, count in closed.items()})
    notes.success(
        request,
        gettext("%(count)s connections of %(client_id)s closed. It may connect again.")
        % {"count": sum(closed.values()), "client_id": client_id},
    )
    return redirect("clients")


async def _context(request: HttpRequest) -> dict[str, Any]:
    listing = await client_book.listing(gateway())
    with_tools, only_twice = request.GET.get("show") == "tools", request.GET.get("twice") == "1"
    sort, down = request.GET.get("sort", "client"), request.GET.get("down") == "1"
    sort = sort if sort in SORTS else "client"
    text = request.GET.get("q", "").strip()
    found = in_order(select(listing, text, with_tools=with_tools, only_twice=only_twice), sort, down=down)
    page = page_of(request, found, PAGE_ROWS)
    return {
        "listing": listing,
        "rows": page.rows,
        "client_ids": sorted({row.client_id for row in page.rows if row.client_id}),
        "metrics": client_metrics(page.rows, listing),
        "columns": {key: head_cell(key, "", sort, down, rises=key not in ("rate", "connections")) for key in SORTS},
        "q": text,
        "shows_tools": with_tools,
        "only_twice": only_twice,
        "twice": sum(one.is_twice for one in listing.named),
        "tools": len(listing.clients) - len(listing.named),
        "found": len(found),
        "failures": listing.failures,
        "page": page.number,
        "pages": page.pages,
        "namesrv_address": django_settings.APPLIANCE.namesrv_address,
    }
