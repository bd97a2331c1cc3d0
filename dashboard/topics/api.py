"""/api/v1/topics: list, get, create, change, delete; /topic-changes: the same for many, as runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils.translation import gettext
from ninja import Field, Path, Query, Schema

from dashboard.access.permissions import Permission
from dashboard.audit.notes import changed, note, note_nothing
from dashboard.cluster.gateway import gateway
from dashboard.cluster.values import TopicSummary
from dashboard.forms.fields import DURATION_MS_MAX
from dashboard.groups.group_cache import group_book
from dashboard.http.client_address import client_address
from dashboard.http.request_ids import request_id
from dashboard.models.audit import Way
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, Listed, part_of
from dashboard.rest.refusals import FormProblem, caller, checked
from dashboard.rest.routes import Routes
from dashboard.rest.values import NUMBER_MAX, Given, Out, named
from dashboard.status.readers import Readers, readers_of
from dashboard.topics import change_runs
from dashboard.topics.change_runs import ChangeRun
from dashboard.topics.changes import RESETS, TOPICS_MAX, Asker, What, difference_of
from dashboard.topics.forms import QUEUES_MAX, TopicChangeForm, TopicChangesForm, TopicForm
from dashboard.topics.schemas import Perm, TopicChange, TopicDetailOut, TopicFiguresOut, TopicIn, TopicList, TopicOut
from dashboard.topics.topic_cache import topic_book
from gantrymq.message.topics import TOPIC_CHARS_MAX

router = Routes(asks_cluster=True)
changes = Routes()
RUN_MAX = 1 << 31
FORM_NAMES = {"queues": "write_queues", "keep_for": "retention_ms", "keep_messages": "retention_messages"}
READ = Token(Permission.TOPICS_READ)
WRITE = Token(Permission.TOPICS_WRITE)


TopicName = Annotated[str, Field(pattern=r"^[%|a-zA-Z0-9_-]+$", max_length=TOPIC_CHARS_MAX)]


class TopicChangesIn(Given):
    """perm and queues need their values; retention takes the topics' own away where it is absent.

    reset-to-end and reset-to-begin reset the offsets of all groups of each topic.
    """

    what: What
    topics: list[TopicName] = Field(min_length=1, max_length=TOPICS_MAX, description="one or more")
    perm: Perm | None = Field(None, description="for perm")
    read_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="for queues: on each broker")
    write_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="for queues: on each broker")
    retention_ms: int | None = Field(
        None, ge=1, le=DURATION_MS_MAX, description="for retention; absent: as long as the brokers keep it"
    )
    retention_messages: int | None = Field(None, ge=1, le=NUMBER_MAX, description="for retention: of a queue")

    def form_data(self) -> dict[str, Any]:
        """As the pages' form takes it."""
        kept = f"{self.retention_ms} ms" if self.retention_ms else ""
        given = self.dict(exclude={"topics", "retention_ms", "retention_messages"}, exclude_none=True)
        return given | {"keep_for": kept, "keep_messages": self.retention_messages or ""}


class TopicChangeResult(Schema):
    """One topic. result: null while it waits. detail: more about it, or why it failed."""

    topic: str
    result: Literal["done", "failed"] | None
    detail: str


class TopicChangesOut(Out):
    """A run; the newest 50 are known. resumed_at: when it went on after a restart; detail: why it failed."""

    id: int = named("number")
    what: What
    state: Literal["running", "done", "stopped", "failed"]
    started_at: datetime
    resumed_at: datetime | None
    detail: str = named("told")
    done: int
    failed: int
    topics: list[TopicChangeResult]

    @classmethod
    def of_run(cls, run: ChangeRun) -> TopicChangesOut:
        return cls.of(
            run, what=run.wanted.what,
            topics=[
                TopicChangeResult(
                    topic=name,
                    result=None if dealt is None else "done" if dealt.is_done else "failed",
                    detail=dealt.told if dealt else "",
                )
                for name, dealt in run.rows
            ],
        )  # fmt: skip


class TopicChangesList(Listed[TopicChangesOut]):
    """The newest first."""


class TopicDifferenceOut(Out):
    """before, after: the settings that would change. A before of null: brokers differ; 0: no limit of its own.
    problem: why it can't be changed, "" when it can.
    """

    topic: str
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    problem: str = ""


class TopicDifferences(Listed[TopicDifferenceOut]):
    """In the order of the topics."""


@router.get("", auth=READ, summary="List topics")
async def list_topics(
    request: HttpRequest,
    q: str = Query("", description="part of the name"),
    system: bool = Query(False, description="the cluster's own topics too"),
    retry: bool = Query(False, description="retry and dead-letter topics too"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> TopicList:
    part = part_of(cursor, limit)
    listing = await gateway().topics.list()
    kinds = {"normal"} | ({"system"} if system else set()) | ({"retry", "dead letter"} if retry else set())
    rows = [row for row in listing.rows if row.kind in kinds and q.lower() in row.name.lower()]
    shown = await gateway().topics.with_metrics(rows[part.rows])
    readers = readers_of(group_book.seen)
    items = (TopicOut.of_row(row, _figures(row, readers)) for row in shown)
    return TopicList.cut(part, items, len(rows), listing.failures)


@router.post("", auth=WRITE, response=(201, 409), summary="Create a topic")
async def create_topic(request: HttpRequest, body: TopicIn) -> TopicDetailOut:
    given = body.dict(exclude_none=True)
    form = checked(TopicForm(_form_data(given)), **FORM_NAMES)
    wanted = form.cleaned_data
    if body.read_queues is not None and body.read_queues < body.write_queues:
        told = "At least as many as write_queues: messages of the others would never be read."
        raise FormProblem({"read_queues": [told]})
    await gateway().topics.create(
        wanted["name"],
        queues=wanted["queues"],
        read_queues=body.read_queues,
        perm=wanted["perm"],
        order=wanted["order"],
        retention_ms=wanted["keep_for"],
        retention_messages=wanted["keep_messages"],
    )
    note(request, "topic created", wanted["name"], wanted)
    return TopicDetailOut.of_detail(await gateway().topics.get(wanted["name"]))


@router.get("/{name}", auth=READ, summary="One topic")
async def get_topic(request: HttpRequest, name: str) -> TopicDetailOut:
    return TopicDetailOut.of_detail(await gateway().topics.get(name))


@router.put("/{name}", auth=WRITE, response=409, summary="Change a topic")
async def update_topic(request: HttpRequest, name: str, body: TopicChange) -> TopicDetailOut:
    given = body.dict(exclude_none=True)
    form = checked(TopicChangeForm({"queues": 1, "perm": "read-write"} | _form_data(given)), **FORM_NAMES)
    queues = body.write_queues
    perm = form.cleaned_data["perm"] if "perm" in given else None
    before = await gateway().topics.get(name)
    await gateway().topics.change(
        name,
        read_queues=form.cleaned_data["read_queues"] or queues,
        write_queues=queues,
        perm=perm,
        order=body.order,
        retention_ms=form.cleaned_data["keep_for"] or body.retention_ms,
        retention_messages=form.cleaned_data["keep_messages"] or body.retention_messages,
    )
    now = await gateway().topics.get(name)
    note(request, "topic changed", name, changed(asdict(before.first_settings), asdict(now.first_settings)))
    return TopicDetailOut.of_detail(now)


@router.delete("/{name}", auth=WRITE, response=409, summary="Delete a topic and its messages")
async def delete_topic(request: HttpRequest, name: str) -> None:
    await gateway().topics.delete(name)
    note(request, "topic deleted", name)


@router.get("/{name}/figures", auth=READ, summary="A topic's bytes, producers and groups")
async def get_topic_figures(request: HttpRequest, name: str) -> TopicFiguresOut:
    detail = await gateway().topics.get(name)
    return _figures(TopicSummary(detail.name, detail.kind, detail.settings), readers_of(group_book.seen))


@changes.post("", auth=WRITE, response=(202, 409), summary="Change or delete many topics")
async def change_topics(request: HttpRequest, body: TopicChangesIn) -> TopicChangesOut:
    form = checked(TopicChangesForm(body.form_data()), **FORM_NAMES)
    wanted, username = form.wanted(), caller(request)
    asker = Asker(username, Way.REST, client_address(request), request_id())
    run = await change_runs.change_runs.start(wanted, body.topics, asker)
    note(request, "change of many topics started", "", wanted.facts | {"run": run.number, "topics": len(run.topics)})
    return TopicChangesOut.of_run(run)


@changes.post(
    "/preview", auth=WRITE, response=502, summary="What a change of many topics would change; nothing is done"
)
async def preview_topic_changes(request: HttpRequest, body: TopicChangesIn) -> TopicDifferences:
    note_nothing(request)
    wanted = checked(TopicChangesForm(body.form_data()), **FORM_NAMES).wanted()
    listing = await gateway().topics.list()
    there = {row.name: row for row in listing.rows}
    gone = (
        gettext("There is no topic %(gone)s: it was deleted in between, or not all brokers answer.")
        if listing.failures
        else gettext("There is no topic %(name)s.")
    )

    def told(name: str) -> TopicDifferenceOut:
        if name not in there:
            return TopicDifferenceOut(topic=name, problem=gone % {"gone": name, "name": name})
        if there[name].kind == "system" and wanted.what not in RESETS:
            return TopicDifferenceOut(
                topic=name, problem=gettext("%(name)s is a topic of the cluster itself.") % {"name": name}
            )
        return TopicDifferenceOut.of(difference_of(wanted, there[name]), problem="")

    return TopicDifferences.whole(map(told, dict.fromkeys(body.topics)), listing.failures)


@changes.get("", auth=WRITE, summary="Runs that changed many topics")
async def list_topic_changes(request: HttpRequest) -> TopicChangesList:
    return TopicChangesList.whole(TopicChangesOut.of_run(run) for run in await change_runs.newest())


@changes.get("/{run_id}", auth=WRITE, summary="Progress of a run")
async def get_topic_changes(request: HttpRequest, run_id: int = Path(..., ge=1, le=RUN_MAX)) -> TopicChangesOut:
    return TopicChangesOut.of_run(await change_runs.found(run_id))


@changes.post("/{run_id}/stop", auth=WRITE, response=409, summary="Stop after the current topic")
async def stop_topic_changes(request: HttpRequest, run_id: int = Path(..., ge=1, le=RUN_MAX)) -> TopicChangesOut:
    found = await change_runs.stop(run_id, caller(request))
    note(request, "change of many topics stopped", "", {"run": run_id, "dealt_with": len(found.dealt)})
    return TopicChangesOut.of_run(found)


def _figures(row: TopicSummary, readers: Mapping[str, Readers]) -> TopicFiguresOut:
    return TopicFiguresOut.of(row, readers, topic_book.facts(row.name, row.brokers))


def _form_data(given: dict[str, Any]) -> dict[str, Any]:
    """A body as the pages' form takes it; 0 takes a retention away, which the form says by nothing."""
    kept_ms, kept = given.pop("retention_ms", None), given.pop("retention_messages", None)
    given = {("queues" if name == "write_queues" else name): value for name, value in given.items()}
    return given | {"keep_for": f"{kept_ms} ms" if kept_ms else "", "keep_messages": kept or ""}
