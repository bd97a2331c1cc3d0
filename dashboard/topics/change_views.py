"""Many topics at once: what it would do (GET), the typed number (POST), how far it is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.access.permissions import ACT, FORM, Permission, requires
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import GatewayError, NotAllowed
from dashboard.cluster.gateway import gateway
from dashboard.cluster.topic_requests import LISTING_SHARED_S
from dashboard.cluster.units import milliseconds
from dashboard.cluster.values import TopicSummary
from dashboard.forms.base import TypedNameForm
from dashboard.forms.shell_commands import admin_line, curl_line
from dashboard.groups.group_cache import group_book
from dashboard.http.client_address import client_address
from dashboard.http.error_pages import gateway_error
from dashboard.http.request_ids import request_id
from dashboard.models.audit import Way
from dashboard.status.board import board
from dashboard.status.metric import shape_of
from dashboard.topics import change_runs
from dashboard.topics.changes import PERM_WORDS, RESETS, TOPICS_MAX, Asker, TopicChange, TopicDifference, difference_of
from dashboard.topics.forms import TopicChangesForm
from dashboard.topics.views import found_rows
from gantrymq.message.topic_attributes import RETENTION_MESSAGES, RETENTION_MS
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE

NAMES_SHOWN = 20


@requires(Permission.TOPICS_WRITE, FORM)
async def change(request: HttpRequest) -> HttpResponse:
    """Which topics (topic=…, or all=1 with the list's filter); what would become of them; the typed number.

    A look before the change is a POST, too: hundreds of names fit into no address.
    """
    given = request.POST if request.method == "POST" else request.GET
    is_go = request.method == "POST" and "typed_name" in given
    note_nothing(request)
    listing = await gateway().topics.list(max_age_s=LISTING_SHARED_S)
    rows = found_rows(request, listing)[1] if given.get("all") == "1" else _named(listing.rows, given)
    if not 0 < len(rows) <= TOPICS_MAX:
        raise NotAllowed(gettext("Choose 1 to %(topics_max)s topics.") % {"topics_max": TOPICS_MAX})
    form = TopicChangesForm(given if "what" in given else None)
    names = [row.name for row in rows]
    context: dict[str, Any] = {"form": form, "names": names, "shown": names[:NAMES_SHOWN]}
    if not form.is_valid():
        return render(request, "topics/change.html", context, status=422 if form.is_bound else 200)
    own = [row.name for row in rows if row.kind == "system"]
    if own:
        raise NotAllowed(gettext("%(own)s is a topic of the cluster itself.") % {"own": own[0]})
    wanted, typed_text = form.wanted(), f"{len(names)} topic{'' if len(names) == 1 else 's'}"
    typed = TypedNameForm(given if is_go else None, name=typed_text, undone="changed")
    typed.fields["typed_name"].label = gettext("How many")
    if is_go and typed.is_valid():
        asker = Asker(str(request.user), Way.PAGE, client_address(request), request_id())
        run = await change_runs.change_runs.start(wanted, names, asker)
        note(request, "change of many topics started", "", wanted.facts | {"run": run.number, "topics": len(names)})
        return redirect("topic-changes", run.number)
    readers = _readers_of(names)
    api = request.build_absolute_uri(reverse("api:change_topics"))
    lines = admin_lines(settings.APPLIANCE.namesrv_address, wanted, names, readers)
    context |= {
        "wanted": wanted, "typed": typed, "typed_text": typed_text, "groups": sorted(readers),
        "stored": _stored(rows), "hidden": _hidden(form),
        "differences": _alike([difference_of(wanted, row) for row in rows]),
        "lines": [*lines, curl_line(api, rest_body(wanted, names))],
    }  # fmt: skip
    return render(request, "topics/change.html", context, status=422 if is_go else 200)


@requires(Permission.TOPICS_WRITE)
async def changes(request: HttpRequest, number: int) -> HttpResponse:
    """How far a run is, with the result of each topic."""
    run = await change_runs.found(number)
    context = {"run": run, "shape": shape_of(run.state, str(len(run.topics)))}
    template = "topics/_changes.html" if request.headers.get("HX-Target") == "topic-changes" else "topics/changes.html"
    return render(request, template, context)


@requires(Permission.TOPICS_WRITE, ACT)
async def stop(request: HttpRequest, number: int) -> HttpResponse:
    try:
        run = await change_runs.stop(number, str(request.user))
    except GatewayError as exc:
        note_nothing(request)
        return gateway_error(request, exc)
    note(request, "change of many topics stopped", "", {"run": number, "dealt_with": len(run.dealt)})
    return redirect("topic-changes", number)


def _named(rows: tuple[TopicSummary, ...], given: Any) -> list[TopicSummary]:
    """The chosen topics that are there. Raises NotAllowed for one that is not."""
    known = {row.name: row for row in rows}
    names = list(dict.fromkeys(given.getlist("topic")))
    gone = next((name for name in names if name not in known), None)
    if gone is not None:
        raise NotAllowed(
            gettext("There is no topic %(gone)s: it was deleted in between, or not all brokers answer.")
            % {"gone": gone}
        )
    return [known[name] for name in names]


def _stored(rows: list[TopicSummary]) -> int | None:
    """Messages that can be read, as they were counted last; None when a topic was not counted yet."""
    counted = board.snapshot.topics if board.snapshot is not None else {}
    if any(row.name not in counted for row in rows):
        return None
    return sum(counted[row.name].stored for row in rows)


def _alike(found: list[TopicDifference]) -> list[tuple[list[tuple[str, str, str]], list[str]]]:
    """(field, before, after) of each value, and the topics of which that is so; most topics first."""
    alike: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for one in found:
        lines = tuple((name, _text(name, one.before[name]), _text(name, value)) for name, value in one.after.items())
        alike.setdefault(lines, []).append(one.topic)
    return sorted(((list(lines), topics) for lines, topics in alike.items()), key=lambda item: -len(item[1]))


def _text(name: str, value: Any) -> str:
    if value is None:
        return gettext("differs between brokers")
    if value == 0:
        return gettext("not set")
    return milliseconds(value) if name == "retention_ms" else str(value)


def _readers_of(names: list[str]) -> dict[str, list[str]]:
    """Group → its topics among these, as the groups were seen last."""
    found: dict[str, list[str]] = {}
    wanted = set(names)
    for group in group_book.seen:
        topics = sorted({place.topic for place in group.places} & wanted)
        if topics:
            found[group.name] = topics
    return found


def _hidden(form: TopicChangesForm) -> dict[str, str]:
    """The form's fields for the one that takes the number."""
    return {name: str(form[name].value() or "") for name in form.fields}


WORDS = {PERM_READ | PERM_WRITE: "rw", PERM_READ: "r", PERM_WRITE: "w"}
PLACE = "TOPIC"  # stands for the loop's variable until the line is quoted


def admin_lines(
    namesrv: str, wanted: TopicChange, topics: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> list[str]:
    """`gantry admin` lines. groups: those that read the topics, each with its topics."""
    if wanted.what in RESETS:
        to = wanted.what.removeprefix("reset-to-")
        return [
            admin_line(namesrv, "reset", group, *names, "--to", to, "--yes") for group, names in sorted(groups.items())
        ]
    line = admin_line(namesrv, "topics", *_words(wanted))
    quoted = " ".join(map(shlex.quote, topics))
    of_each = line.replace(PLACE, '"$topic"', 1)
    return [f"for topic in {quoted}; do {of_each}; done"]


def _words(wanted: TopicChange) -> list[str]:
    match wanted.what:
        case "perm":
            return ["set", PLACE, "--perm", WORDS.get(wanted.perm or 0, "rw")]
        case "queues":
            return ["set", PLACE, "--read-queues", str(wanted.read_queues), "--write-queues", str(wanted.write_queues)]
        case "retention":
            kept = ((RETENTION_MS, wanted.retention_ms), (RETENTION_MESSAGES, wanted.retention_messages))
            words = [f"--attribute={name}={value}" if value else f"--attribute=-{name}" for name, value in kept]
            return ["set", PLACE, *words]
    return ["delete", PLACE, "--yes"]


def rest_body(wanted: TopicChange, topics: Sequence[str]) -> dict[str, Any]:
    """What REST takes for the same."""
    body: dict[str, Any] = {"what": wanted.what, "topics": list(topics)}
    match wanted.what:
        case "perm":
            body["perm"] = PERM_WORDS.get(wanted.perm or 0)
        case "queues":
            body |= {"read_queues": wanted.read_queues, "write_queues": wanted.write_queues}
        case "retention":
            kept = {"retention_ms": wanted.retention_ms, "retention_messages": wanted.retention_messages}
            body |= {name: value for name, value in kept.items() if value}
    return body
