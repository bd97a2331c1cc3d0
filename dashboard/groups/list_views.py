"""The list of consumer groups. It shows what the book has: however many tabs ask, brokers are asked once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.groups.group_cache import group_book
from dashboard.groups.listing import COLUMNS, SORTS, metrics_of, rows_of, sorted_rows
from dashboard.groups.selection import GroupSelection, select
from dashboard.http.error_pages import gateway_error
from dashboard.http.paging import page_of
from dashboard.limits.names import NameLimit, current
from dashboard.status.board import board

PAGE_GROUPS = 50
FRAGMENTS_MAX = 32
FRAGMENT_SHARED_S = 1.0  # below what a tab waits before it asks again

# The list as it was drawn last, by address, what an account may see, and language: tabs that ask for the same see it.
_fragments: dict[tuple[str, NameLimit, str], tuple[float, asyncio.Task[bytes]]] = {}


@requires(Permission.GROUPS_READ)
@require_safe
async def groups(request: HttpRequest) -> HttpResponse:
    """The list as the address says: q, show=system, sort, down, page."""
    try:
        if request.headers.get("HX-Target") == "group-list":
            return HttpResponse(await _shared_fragment(request))
        return render(request, "groups/groups.html", await _context(request))
    except GatewayError as exc:
        return gateway_error(request, exc)


async def _shared_fragment(request: HttpRequest) -> bytes:
    """The list alone, drawn once a second for all who ask with this address and may see the same."""

    async def draw() -> bytes:
        return render(request, "groups/_list.html", await _context(request)).content

    wanted, loop = (request.get_full_path(), current(), get_language()), asyncio.get_running_loop()
    now = loop.time()
    drawn = _fragments.get(wanted)
    if drawn is None or now - drawn[0] >= FRAGMENT_SHARED_S or drawn[1].get_loop() is not loop:
        if len(_fragments) >= FRAGMENTS_MAX:
            _fragments.clear()
        drawn = _fragments[wanted] = now, loop.create_task(draw(), name="group list")
    return await asyncio.shield(drawn[1])


async def _context(request: HttpRequest) -> dict[str, Any]:
    sort = request.GET.get("sort", "behind")
    sort = sort if sort in SORTS else "behind"
    down = request.GET.get("down", "1" if "sort" not in request.GET else "") == "1"
    chosen = await select(
        gateway(), GroupSelection(request.GET.get("q", "").strip(), request.GET.get("show") == "system")
    )
    stored = board.snapshot.stored if board.snapshot is not None else None
    in_order = sorted_rows(rows_of(chosen.groups, stored), sort, down=down)
    page = page_of(request, in_order, PAGE_GROUPS)
    shown = await group_book.rows(gateway(), [row.name for row in page.rows])
    rows = sorted_rows(rows_of(shown, stored), sort, down=down)  # some may have been looked at for the first time
    return {
        "rows": rows, "metrics": metrics_of(rows, time.time()), "columns": _columns(sort, down),
        "name_column": _column("name", gettext("Consumer group"), sort, down),
        "state_column": _column("state", "", sort, down),
        "failures": chosen.failures, "q": chosen.wanted.text, "shows_system": chosen.wanted.shows_system,
        "page": page.number, "pages": page.pages, "total": chosen.visible, "hidden": chosen.hidden,
        "unseen": sum(not group.at for group in chosen.groups), "found": len(chosen.groups),
        "namesrv_address": django_settings.APPLIANCE.namesrv_address,
    }  # fmt: skip


def _columns(sort: str, down: bool) -> list[dict[str, Any]]:
    return [_column(key, gettext(label), sort, down) for key, (label, _) in COLUMNS.items()]


def _column(key: str, label: str, sort: str, down: bool) -> dict[str, Any]:
    """A head cell: what a click on it asks for. Columns of numbers start with the greatest."""
    is_current = key == sort
    next_down = not down if is_current else key not in ("name", "state", "zero")
    aria = ("descending" if down else "ascending") if is_current else "none"
    return {"key": key, "label": label, "down": "1" if next_down else "0", "aria": aria}
