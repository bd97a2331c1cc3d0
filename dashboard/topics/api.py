"""/api/v1/topics: list, get, create, change, delete; /topic-changes: the same for many, as runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Field, Path, Query, Router, Schema, Status

from dashboard.access.permissions import Permission
from dashboard.audit.notes import changed, note
from dashboard.cluster.gateway import gateway
from dashboard.cluster.values import TopicSummary
from dashboard.groups.group_cache import group_book
from dashboard.http.client_address import client_address
from dashboard.http.request_ids import request_id
from dashboard.models.audit import Way
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, FormProblem, caller
from dashboard.rest.values import NUMBER_MAX, Offset, Order, Out, named
from dashboard.status.readers import Readers, readers_of
from dashboard.topics import change_runs
from dashboard.topics.change_form import TopicChangesForm
from dashboard.topics.change_runs import ChangeRun
from dashboard.topics.changes import TOPICS_MAX, Asker, What
from dashboard.topics.figure_schemas import TopicFiguresOut
from dashboard.topics.forms import QUEUES_MAX, TopicChangeForm, TopicForm
from dashboard.topics.schemas import Perm, TopicChange, TopicDetailOut, TopicIn, TopicList, TopicOut
from dashboard.topics.topic_cache import topic_book
from gantrymq.message.topics import TOPIC_CHARS_MAX

logger = logging.getLogger(__name__)

router = Router()
changes = Router()
RUN_MAX = 1 << 31
LIST_MAX = 500
READ = Token(Permission.TOPICS_READ)
WRITE = Token(Permission.TOPICS_WRITE)


TopicName = Annotated[str, Field(pattern=r"^[%|a-zA-Z0-9_-]+$", max_length=TOPIC_CHARS_MAX)]


class TopicChangesIn(Order):
    """access needs perm, queues both numbers; keep takes the topics' own retention away where it is absent.

    skip and again move all groups of each topic to its end, to its beginning.
    """

    what: What
    topics: list[TopicName] = Field(min_length=1, max_length=TOPICS_MAX, description="one or more")
    perm: Perm | None = Field(None, description="for access")
    read_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="for queues: on each broker")
    write_queues: int | None = Field(None, ge=1, le=QUEUES_MAX, description="for queues: on each broker")
    retention_ms: int | None = Field(
        None, ge=1, le=NUMBER_MAX, description="for keep; absent: as long as the brokers keep it"
    )
    retention_messages: int | None = Field(None, ge=1, le=NUMBER_MAX, description="for keep: of a queue")

    def form_data(self) -> dict[str, Any]:
        """As the pages' form takes it."""
        kept = f"{self.retention_ms} ms" if self.retention_ms else ""
        given = self.dict(exclude={"topics", "retention_ms", "retention_messages"}, exclude_none=True)
        return given | {"keep_for": kept, "keep_messages": self.retention_messages or ""}


class TopicChangeResult(Schema):
    """One topic. result: null while it waits. told: more about it, or why it failed."""

    topic: str
    result: Literal["done", "failed"] | None
    told: str


class TopicChangesOut(Out):
    """A run; the newest 50 are known. resumed_at: when it went on after a restart; told: why it failed."""

    run: int = named("number")
    what: What
    state: Literal["running", "done", "stopped", "failed"]
    started_at: datetime
    resumed_at: datetime | None
    told: str
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
                    told=dealt.told if dealt else "",
                )
                for name, dealt in run.rows
            ],
        )  # fmt: skip


@router.get("", response={200: TopicList} | REFUSALS, auth=READ, summary="List topics", operation_id="list_topics")
async def list_topics(
    request: HttpRequest,
    q: str = Query("", description="part of the name"),
    system: bool = Query(False, description="the cluster's own topics too"),
    retry: bool = Query(False, description="retry and dead-letter topics too"),
    offset: Offset = 0,
    limit: int = Query(100, ge=1, le=LIST_MAX),
) -> TopicList:
    listing = await gateway().topics.list()
    kinds = {"normal"} | ({"system"} if system else set()) | ({"retry", "dead letter"} if retry else set())
    rows = [row for row in listing.rows if row.kind in kinds and q.lower() in row.name.lower()]
    shown = await gateway().topics.with_metrics(rows[offset : offset + limit])
    readers = readers_of(group_book.seen)
    return TopicList(
        topics=[TopicOut.of_row(row, _figures(row, readers)) for row in shown],
        total=len(rows),
        troubles=[f"{failure.what}: {failure.reason}" for failure in listing.failures],
    )


@router.post("", response={201: TopicDetailOut} | REFUSALS, auth=WRITE, summary="Create a topic",
             operation_id="create_topic")  # fmt: skip
async def create_topic(request: HttpRequest, body: TopicIn) -> Status[TopicDetailOut]:
    form = TopicForm(_form_data(body.dict(exclude_none=True)))
    if not form.is_valid():
        raise FormProblem(form.problems())
    wanted = form.cleaned_data
    await gateway().topics.create(
        wanted["name"],
        queues=wanted["queues"],
        perm=wanted["perm"],
        order=wanted["order"],
        retention_ms=wanted["keep_for"],
        retention_messages=wanted["keep_messages"],
    )
    _log(request, "topic created", "topic_created", wanted["name"], **wanted)
    return Status(201, TopicDetailOut.of_detail(await gateway().topics.get(wanted["name"])))


@router.get("/{name}", response={200: TopicDetailOut} | REFUSALS, auth=READ, summary="One topic",
            operation_id="get_topic")  # fmt: skip
async def get_topic(request: HttpRequest, name: str) -> TopicDetailOut:
    return TopicDetailOut.of_detail(await gateway().topics.get(name))


@router.put("/{name}", response={200: TopicDetailOut} | REFUSALS, auth=WRITE, summary="Change a topic",
            operation_id="update_topic")  # fmt: skip
async def update_topic(request: HttpRequest, name: str, body: TopicChange) -> TopicDetailOut:
    given = body.dict(exclude_none=True)
    form = TopicChangeForm({"queues": 1, "perm": "read-write"} | _form_data(given))
    if not form.is_valid():
        raise FormProblem(form.problems())
    queues = form.cleaned_data["queues"] if "queues" in given else None
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
    _log(request, "topic changed", "topic_changed", name,
         **changed(asdict(before.first_settings), asdict(now.first_settings)))  # fmt: skip
    return TopicDetailOut.of_detail(now)


@router.delete("/{name}", response={204: None} | REFUSALS, auth=WRITE, summary="Delete a topic and its messages",
               operation_id="delete_topic")  # fmt: skip
async def delete_topic(request: HttpRequest, name: str) -> Status[None]:
    await gateway().topics.delete(name)
    _log(request, "topic deleted", "topic_deleted", name)
    return Status(204, None)


@router.get("/{name}/figures", response={200: TopicFiguresOut} | REFUSALS, auth=READ,
            summary="A topic's bytes, producers and groups", operation_id="get_topic_figures")  # fmt: skip
async def get_topic_figures(request: HttpRequest, name: str) -> TopicFiguresOut:
    detail = await gateway().topics.get(name)
    return _figures(TopicSummary(detail.name, detail.kind, detail.settings), readers_of(group_book.seen))


@changes.post("", response={202: TopicChangesOut} | REFUSALS, auth=WRITE, summary="Change or delete many topics",
             operation_id="change_topics")  # fmt: skip
async def change_topics(request: HttpRequest, body: TopicChangesIn) -> Status[TopicChangesOut]:
    form = TopicChangesForm(body.form_data())
    if not form.is_valid():
        raise FormProblem(form.problems())
    wanted, username = form.wanted(), caller(request)["username"]
    asker = Asker(username, Way.REST, client_address(request), request_id())
    run = await change_runs.change_runs.start(wanted, body.topics, asker)
    note(request, "change of many topics started", "", wanted.facts | {"run": run.number, "topics": len(run.topics)})
    facts = {"event": "topic_changes_started", "run": run.number, "topics": len(run.topics)}
    logger.info("change of many topics started", extra=facts | caller(request))
    return Status(202, TopicChangesOut.of_run(run))


@changes.get("", response={200: list[TopicChangesOut]} | REFUSALS, auth=WRITE, summary="Runs that changed many topics",
            operation_id="list_topic_changes")  # fmt: skip
async def list_topic_changes(request: HttpRequest) -> list[TopicChangesOut]:
    return [TopicChangesOut.of_run(run) for run in await change_runs.newest()]


@changes.get("/{run}", response={200: TopicChangesOut} | REFUSALS, auth=WRITE, summary="Progress of a run",
            operation_id="get_topic_changes")  # fmt: skip
async def get_topic_changes(request: HttpRequest, run: int = Path(..., ge=1, le=RUN_MAX)) -> TopicChangesOut:
    return TopicChangesOut.of_run(await change_runs.found(run))


@changes.post("/{run}/stop", response={200: TopicChangesOut} | REFUSALS, auth=WRITE,
             summary="Stop after the current topic", operation_id="stop_topic_changes")  # fmt: skip
async def stop_topic_changes(request: HttpRequest, run: int = Path(..., ge=1, le=RUN_MAX)) -> TopicChangesOut:
    found = await change_runs.stop(run, caller(request)["username"])
    note(request, "change of many topics stopped", "", {"run": run, "dealt_with": len(found.dealt)})
    return TopicChangesOut.of_run(found)


def _figures(row: TopicSummary, readers: Mapping[str, Readers]) -> TopicFiguresOut:
    return TopicFiguresOut.of(row, readers, topic_book.facts(row.name, row.brokers))


def _form_data(given: dict[str, Any]) -> dict[str, Any]:
    """A body as the pages' form takes it; 0 takes a retention away, which the form says by nothing."""
    kept_ms, kept = given.pop("retention_ms", None), given.pop("retention_messages", None)
    return given | {"keep_for": f"{kept_ms} ms" if kept_ms else "", "keep_messages": kept or ""}


def _log(request: HttpRequest, text: str, event: str, topic: str, **details: Any) -> None:
    """In the process's log and in the audit log."""
    logger.info(text, extra={"event": event, "topic": topic} | caller(request))
    note(request, text, topic, {key: value for key, value in details.items() if key != "name"})
