"""Reading dead letters: the groups that have some, and a group's letters newest first, a bounded step at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext

from dashboard.cluster.browse import read_cursor, write_cursor
from dashboard.cluster.calls import CALLS_AT_ONCE
from dashboard.cluster.errors import GatewayError, GroupNotFound, TopicNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_search import Search
from dashboard.cluster.values import PartialFailure, TopicDetail
from dashboard.language.sentences import joined
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import CONSUME_ERROR, CONSUME_ERROR_TEXT
from gantrymq.message.topics import DLQ_PREFIX, dlq_topic, is_dlq_topic


@dataclass(frozen=True, slots=True)
class Cause:
    """Letters that failed for one reason. error: "shop.OutOfStock at orders.py:42", empty when no client told one.

    text: the last line of the newest one's traceback.
    """

    error: str
    text: str
    count: int
    first_ms: int
    last_ms: int
    newest: MessageExt

    @property
    def condition(self) -> str:
        """What finds these letters when it is typed to find messages."""
        return f'{CONSUME_ERROR}="{self.error}"'

    @property
    def place(self) -> str:
        return f"{self.newest.broker_name}.{self.newest.queue_id}.{self.newest.queue_offset}"


def cause_of(message: MessageExt) -> str:
    """The error of one letter, empty when no client told one."""
    return message.properties.get(CONSUME_ERROR, "")


def grouped(letters: Iterable[MessageExt]) -> list[Cause]:
    """The letters by cause, the most frequent first."""
    found: dict[str, list[MessageExt]] = {}
    for letter in letters:
        found.setdefault(cause_of(letter), []).append(letter)
    causes = [_cause(error, same) for error, same in found.items()]
    return sorted(causes, key=lambda cause: (-cause.count, -cause.last_ms, cause.error))


def _cause(error: str, same: list[MessageExt]) -> Cause:
    newest = max(same, key=lambda letter: letter.store_timestamp)
    first_ms = min(letter.store_timestamp for letter in same)
    text = newest.properties.get(CONSUME_ERROR_TEXT, "")
    return Cause(error, text, len(same), first_ms, newest.store_timestamp, newest)


NEWEST_LOOKED_AT = 32  # of each group in the list
PAGE_LETTERS = 64
STEP_LETTERS = 2048  # looked at in one step
STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """A group in the list. causes: of its newest letters."""

    name: str
    stored: int | None
    last_ms: int
    looked_at: int
    causes: tuple[Cause, ...]
    why: str = ""


@dataclass(slots=True)
class Step:
    """What one step found. begin: the cursor before the first letter; older: to go on from, None at the end."""

    begin: str
    letters: list[MessageExt] = field(default_factory=list)
    scanned: int = 0
    older: str | None = None
    reached_ms: int = 0
    failures: tuple[PartialFailure, ...] = ()

    @property
    def troubles(self) -> list[str]:
        return [f"{failure.what}: {failure.reason}" for failure in self.failures]


async def names(source: Gateway) -> tuple[list[str], tuple[PartialFailure, ...]]:
    """The groups that have a topic of dead letters, and what could not be asked."""
    listing = await source.topics.list()
    return [row.name.removeprefix(DLQ_PREFIX) for row in listing.rows if is_dlq_topic(row.name)], listing.failures


async def summaries(source: Gateway, groups: Sequence[str]) -> list[DeadGroup]:
    """These groups with their letters, those with the newest first; one that can't be read says why."""
    gate = asyncio.Semaphore(CALLS_AT_ONCE)

    async def one(group: str) -> DeadGroup:
        async with gate:
            try:
                detail = await source.topics.get(dlq_topic(group))
                page = await source.messages.newest(detail, limit=NEWEST_LOOKED_AT)
            except GatewayError as exc:
                return DeadGroup(group, None, 0, 0, (), str(exc))
        why = joined((joined([failure.what, failure.reason], ": ") for failure in page.failures), "; ")
        causes = tuple(grouped(page.messages))
        return DeadGroup(group, detail.stored, detail.last_write_ms, len(page.messages), causes, why)

    rows = await asyncio.gather(*(one(group) for group in groups))
    return sorted(rows, key=lambda row: (not row.stored, -row.last_ms, row.name))


async def detail_of(source: Gateway, group: str) -> TopicDetail:
    """The topic of the group's dead letters. Raises GroupNotFound when it has none."""
    try:
        return await source.topics.get(dlq_topic(group))
    except TopicNotFound as exc:
        raise GroupNotFound(gettext("%(group)s has no dead letters.") % {"group": group}) from exc


async def look(
    source: Gateway, detail: TopicDetail, wanted: Search, *, older: str = "", looked_at_max: int = STEP_LETTERS
) -> Step:
    """Look on from the cursor, newest first, for up to STEP_S or so many letters; those that match."""
    cursor = read_cursor(older) if older else {queue.key: queue.max_offset for queue in detail.queues}
    step = Step(begin=write_cursor(cursor))
    started = time.monotonic()
    while True:
        page = await source.messages.newest(detail, limit=PAGE_LETTERS, before=cursor, queue=wanted.queue)
        await wanted.get_ready(page.messages)
        for letter in page.messages:
            if is_before(letter, wanted):
                return step
            if wanted.matches(letter):
                step.letters.append(letter)
        step.scanned += len(page.messages)
        step.reached_ms = page.messages[-1].store_timestamp if page.messages else step.reached_ms
        step.failures = page.failures
        if page.failures or page.older is None:
            step.older = write_cursor(cursor) if page.failures else None
            return step
        cursor = read_cursor(page.older)
        if step.scanned >= looked_at_max or time.monotonic() - started >= STEP_S:
            step.older = page.older
            return step


def is_before(letter: MessageExt, wanted: Search) -> bool:
    """Whether the time that is looked at ends before this letter: no older one belongs to it."""
    return wanted.span.since_ms is not None and letter.store_timestamp < wanted.span.since_ms


def passed(cursor: Mapping[str, int], letter: MessageExt) -> dict[str, int]:
    """The cursor behind a letter that was dealt with."""
    return {**cursor, f"{letter.broker_name}.{letter.queue_id}": letter.queue_offset}
