"""Topics: the list, and a topic's queues, groups and settings; create and delete."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings as django_settings
from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext

from dashboard.access.permissions import FORM, Permission, requires
from dashboard.audit.notes import changed, note
from dashboard.cluster.errors import GatewayError, NotAllowed, TopicExists
from dashboard.cluster.gateway import gateway
from dashboard.cluster.topic_requests import LISTING_SHARED_S, READ_FOR_A_LIST_MAX
from dashboard.cluster.values import TopicDetail, TopicListing, TopicSummary
from dashboard.forms.base import TypedNameForm
from dashboard.forms.fields import duration_text
from dashboard.groups.group_cache import group_book
from dashboard.http.paging import head_cell, page_of
from dashboard.limits.names import NameLimit, current
from dashboard.status.board import board
from dashboard.status.metric import Metrics
from dashboard.status.metrics import topic_list_metrics, topic_metrics
from dashboard.status.readers import Readers, readers_of
from dashboard.topics.columns import SORTS, Line, csv_response, in_order
from dashboard.topics.forms import PERMS, TopicChangeForm, TopicForm
from dashboard.topics.metrics import put_figures, put_size
from dashboard.topics.topic_cache import topic_book

PAGE_ROWS = 50
FRAGMENTS_MAX = 32


# The list as it was drawn last, by address and language: tabs that share a listing see the same.
_fragments: dict[tuple[str, str], tuple[TopicListing, asyncio.Task[bytes]]] = {}
_readers_known: tuple[tuple[int, NameLimit] | None, Mapping[str, Readers]] = (None, {})


@requires(Permission.TOPICS_READ)
async def topics(request: HttpRequest) -> HttpResponse:
    return await _list(request, TopicForm())


@requires(Permission.TOPICS_WRITE, FORM)
async def create(request: HttpRequest) -> HttpResponse:
    """The form by itself, and what takes it; on the list it stands inline."""
    if request.method != "POST":
        return render(request, "topics/create.html", {"form": TopicForm()})
    form = TopicForm(request.POST)
    status = 422
    if form.is_valid():
        try:
            await gateway().topics.create(
                form.cleaned_data["name"],
                queues=form.cleaned_data["queues"],
                perm=form.cleaned_data["perm"],
                order=form.cleaned_data["order"],
                retention_ms=form.cleaned_data["keep_for"],
                retention_messages=form.cleaned_data["keep_messages"],
            )
        except (TopicExists, NotAllowed) as exc:
            form.add_error("name", str(exc))
        except GatewayError as exc:
            form.add_error(None, str(exc))
            status = exc.status
        else:
            note(request, "topic created", form.cleaned_data["name"], form.cleaned_data)
            notes.success(request, (gettext("Topic %(name)s created.") % {"name": form.cleaned_data["name"]}))
            target = reverse("topic", args=[form.cleaned_data["name"]])
            return HttpResponse(headers={"HX-Redirect": target}) if _is_fragment(request) else redirect(target)
    template = "topics/_create_form.html" if _is_fragment(request) else "topics/create.html"
    return render(request, template, {"form": form}, status=status)


@requires(Permission.TOPICS_READ)
async def queues(request: HttpRequest, name: str) -> HttpResponse:
    detail = await gateway().topics.get(name)
    return render(request, "topics/queues.html", await topic_context(detail, "queues"))


@requires(Permission.TOPICS_READ)
async def groups(request: HttpRequest, name: str) -> HttpResponse:
    detail = await gateway().topics.get(name)
    rows, failures = await gateway().groups.of_topic(detail)
    context = await topic_context(detail, "groups") | {"groups": rows, "failures": [*detail.failures, *failures]}
    return render(request, "topics/groups.html", context)


@requires(Permission.TOPICS_WRITE, FORM)
async def settings(request: HttpRequest, name: str) -> HttpResponse:
    detail = await gateway().topics.get(name)
    status = 200
    if request.method == "POST":
        form = TopicChangeForm(request.POST)
        status = 422
        if form.is_valid():
            wanted = form.cleaned_data
            try:
                await gateway().topics.change(
                    name,
                    read_queues=wanted["read_queues"] or wanted["queues"],
                    write_queues=wanted["queues"],
                    perm=wanted["perm"],
                    retention_ms=wanted["keep_for"] or 0,
                    retention_messages=wanted["keep_messages"] or 0,
                )
            except GatewayError as exc:
                form.add_error(None, str(exc))
                status = exc.status
            else:
                after = await gateway().topics.get(name)
                note(
                    request, "topic changed", name, changed(asdict(detail.first_settings), asdict(after.first_settings))
                )
                notes.success(request, gettext("Settings saved on every broker that holds the topic."))
                return redirect("topic-settings", name)
    else:
        now = detail.first_settings
        perm = next((key for key, bits in PERMS.items() if bits == now.perm & 6), "read-write")
        form = TopicChangeForm(
            initial={
                "queues": now.write_queues,
                "read_queues": now.read_queues if now.read_queues != now.write_queues else None,
                "perm": perm,
                "keep_for": duration_text(now.retention_ms),
                "keep_messages": now.retention_messages,
            }
        )
    context = await topic_context(detail, "settings") | {"form": form}
    return render(request, "topics/settings.html", context, status=status)


@requires(Permission.TOPICS_WRITE, FORM)
async def delete(request: HttpRequest, name: str) -> HttpResponse:
    """What would be lost, in numbers; then the typed name."""
    detail = await gateway().topics.get(name)
    rows, _ = await gateway().groups.of_topic(detail)
    form = TypedNameForm(request.POST if request.method == "POST" else None, name=name)
    if request.method == "POST" and form.is_valid():
        await gateway().topics.delete(name)
        note(request, "topic deleted", name)
        notes.success(request, (gettext("Topic %(name)s deleted.") % {"name": name}))
        return redirect("topics")
    context = await topic_context(detail, "settings") | {"form": form, "groups": rows}
    return render(request, "topics/delete.html", context, status=422 if request.method == "POST" else 200)


async def topic_context(detail: TopicDetail, tab: str) -> dict[str, Any]:
    """What the head and the tabs of a topic's pages show."""
    summary = TopicSummary(detail.name, detail.kind, detail.settings)
    [summary] = await gateway().topics.with_metrics([summary], max_age_s=1.0)
    in_rate = summary.metrics.value.in_rate if summary.metrics and summary.metrics.value else None
    metrics = topic_metrics(detail, in_rate)
    put_size(metrics, "topic", topic_book.facts(detail.name, detail.addresses))
    return {
        "topic": detail.name,
        "detail": detail,
        "tab": tab,
        "metrics": metrics,
        "failures": detail.failures,
        "namesrv_address": django_settings.APPLIANCE.namesrv_address,
    }


async def _list(request: HttpRequest, form: TopicForm) -> HttpResponse:
    """The list as the address says: q, sort, down, show, page."""
    is_part = request.headers.get("HX-Target") == "topic-list"
    listing = await gateway().topics.list(max_age_s=LISTING_SHARED_S if is_part else 0.0)
    if is_part:
        return HttpResponse(await _shared_fragment(request, listing))
    return render(request, "topics/topics.html", await _list_context(request, listing) | {"form": form})


async def _shared_fragment(request: HttpRequest, listing: TopicListing) -> bytes:
    """The list alone, drawn once for all who ask with this address for this listing."""

    async def draw() -> bytes:
        return render(request, "topics/_list.html", await _list_context(request, listing)).content

    if current().is_limited:
        return await draw()
    address = request.get_full_path(), get_language()
    if any(known is not listing for known, _ in _fragments.values()) or len(_fragments) >= FRAGMENTS_MAX:
        _fragments.clear()  # no listing is kept longer than it is shared
    if address not in _fragments:
        _fragments[address] = listing, asyncio.get_running_loop().create_task(draw(), name="topic list")
    return await asyncio.shield(_fragments[address][1])


@requires(Permission.TOPICS_READ)
async def export(request: HttpRequest) -> HttpResponse:
    """The list as the address says, all pages of it, as CSV."""
    listing = await gateway().topics.list(max_age_s=LISTING_SHARED_S)
    _, found = found_rows(request, listing)
    return csv_response(_lines(request, found))


def found_rows(request: HttpRequest, listing: TopicListing) -> tuple[int, list[TopicSummary]]:
    """How many topics of the wanted kinds there are, and those that match."""
    wanted, kinds = request.GET.get("q", "").strip().lower(), _shown_kinds(request)
    shown = [row for row in listing.rows if row.kind in kinds]
    return len(shown), [row for row in shown if wanted in row.name.lower()] if wanted else shown


def _shown_kinds(request: HttpRequest) -> set[str]:
    kinds = {"normal", *(kind for kind in request.GET.getlist("show") if kind in ("system", "retry"))}
    return kinds | ({"dead letter"} if "retry" in kinds else set())


def _sort_of(request: HttpRequest) -> str:
    sort = request.GET.get("sort", "name")
    return sort if sort in SORTS else "name"


def _lines(request: HttpRequest, found: Iterable[TopicSummary]) -> list[Line]:
    """What is known of these topics, by what the sampler counted in turn, in the order asked for."""
    counted, readers = board.snapshot.topics if board.snapshot is not None else {}, _readers()
    lines = [
        Line(row, (row.metrics.value if row.metrics else None) or counted.get(row.name), readers.get(row.name),
             partial(topic_book.facts, row.name, row.brokers))
        for row in found
    ]  # fmt: skip
    return in_order(lines, _sort_of(request), down=request.GET.get("down") == "1")


def _readers() -> Mapping[str, Readers]:
    """Who reads which topic; put together once for each look at the groups."""
    global _readers_known
    as_of = group_book.changes, current()
    if _readers_known[0] != as_of:
        _readers_known = as_of, readers_of(group_book.seen)
    return _readers_known[1]


async def _list_context(request: HttpRequest, listing: TopicListing) -> dict[str, Any]:
    wanted = request.GET.get("q", "").strip()
    total, matching = found_rows(request, listing)
    found: Sequence[TopicSummary] = matching
    sort, down, readers = _sort_of(request), request.GET.get("down") == "1", _readers()
    if sort in ("stored", "rate", "written") and len(found) <= READ_FOR_A_LIST_MAX:  # others: by what was counted
        found = await gateway().topics.with_metrics(found)
    page = page_of(request, [line.row for line in _lines(request, found)], PAGE_ROWS)
    rows = await gateway().topics.with_metrics(page.rows, reads_max=READ_FOR_A_LIST_MAX)
    return {
        "rows": rows,
        "metrics": _list_metrics(rows, readers),
        "total": total,
        "found": len(found),
        "hidden": len(listing.rows) - total,
        "failures": listing.failures,
        "q": wanted,
        "sort": sort,
        "down": down,
        "columns": [
            head_cell(key, gettext(label), sort, down, rises=key == "name") for key, (label, _) in SORTS.items()
        ],
        "show": _shown_kinds(request),
        "page": page.number,
        "pages": page.pages,
        "namesrv_address": django_settings.APPLIANCE.namesrv_address,
    }


def _list_metrics(rows: Sequence[TopicSummary], readers: Mapping[str, Readers]) -> Metrics:
    metrics = topic_list_metrics(rows, time.time(), readers)
    put_figures(metrics, rows, topic_book)
    return metrics


def _is_fragment(request: HttpRequest) -> bool:
    return bool(request.headers.get("HX-Request"))
