"""The gateway's answer to "find these messages", the same for the page and for REST: index, place, newest or search."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.cluster.errors import MessageDamaged, TopicNotFound
from dashboard.cluster.message_query import Place
from dashboard.cluster.message_requests import MessageCalls
from dashboard.cluster.message_search import MessageSearch, Search
from dashboard.cluster.message_values import MessageLine, with_damaged
from dashboard.cluster.values import PartialFailure, TopicDetail
from dashboard.language.sentences import gettext, ngettext

FOUND_MESSAGES = 64
TOPIC_NAME = re.compile(r"[%|a-zA-Z0-9_-]{1,127}")


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found. how: newest, place, index or search; told: how the text was understood, a sentence.

    older: the cursor to go on from; reached_ms: the store time down to which a search has looked; elsewhere: when it is
    in another topic its name, and the message's place there or what to look for.
    """

    lines: tuple[MessageLine, ...]
    how: str
    told: str
    older: str | None
    scanned: int
    took_ms: float
    reached_ms: int = 0
    failures: tuple[PartialFailure, ...] = ()
    elsewhere: tuple[str, str] | None = None


class MessageLookup:
    """`gateway.lookup`."""

    def __init__(self, messages: MessageCalls, search: MessageSearch) -> None:
        self._messages = messages
        self._search = search

    async def look(
        self, detail: TopicDetail, wanted: Search, *, older: Mapping[str, int] | None = None, limit: int
    ) -> Looked:
        """Whatever the text asks for. A text with a problem finds nothing and tells the problem."""
        query = wanted.query
        if query.problem:
            return Looked((), "place", query.problem, None, 0, 0.0)
        if query.place is not None:
            return await self._at(detail, query.place)
        if query.is_empty and wanted.span.is_open:
            page = await self._messages.newest(detail, limit=limit, before=dict(older or {}), queue=wanted.queue)
            return Looked(page.lines, "newest", "", page.older, page.scanned, page.took_ms, 0, page.failures)
        if query.indexed and not older:
            found = await self._by_index(detail, wanted)
            if found.lines or found.elsewhere is not None or found.failures or not query.single:
                return found
        step = await self._search.step(detail, wanted, older=older, limit=limit)
        return Looked(
            step.lines, "search", _told_of_search(wanted), step.older, step.scanned, step.took_ms, step.reached_ms,
            step.failures,
        )  # fmt: skip

    async def _by_index(self, detail: TopicDetail, wanted: Search) -> Looked:
        text = wanted.query.indexed
        page = await self._messages.find(detail, text, limit=FOUND_MESSAGES, queue=wanted.queue, span=wanted.span)
        lines = page.lines
        elsewhere = None
        if page.elsewhere is not None:
            elsewhere = (page.elsewhere.topic, MessageLine.of(page.elsewhere).place)
        told = ngettext(
            "The message with the id or key “%(key)s”.", "Messages with the id or key “%(key)s”.", len(lines)
        )
        if len(lines) >= FOUND_MESSAGES:
            told = gettext(
                "The newest %(count)s messages with the key “%(key)s”, the maximum for a key. Give a "
                "time to find older ones."
            )
        told %= {"key": text, "count": len(lines)}
        return Looked(lines, "index", told, None, page.scanned, page.took_ms, 0, page.failures, elsewhere)

    async def _at(self, detail: TopicDetail, place: Place) -> Looked:
        """The messages at a queue's offset, at each broker that is meant."""
        named = [word for word in place.before if word in detail.addresses and word != detail.name]
        others = [word for word in place.before if word not in detail.addresses and word != detail.name]
        told = gettext("Queue %(queue_id)s at offset %(queue_offset)s.") % {
            "queue_id": place.queue_id,
            "queue_offset": place.queue_offset,
        }
        if others:
            there = " ".join([*named, f"q{place.queue_id} @ {place.queue_offset}"])
            is_name = TOPIC_NAME.fullmatch(others[0]) is not None
            return Looked((), "place", told, None, 0, 0.0, elsewhere=(others[0], there) if is_name else None)
        found = await asyncio.gather(
            *(
                self._messages.get(detail.name, broker, place.queue_id, place.queue_offset)
                for broker in named or detail.addresses
            ),
            return_exceptions=True,
        )
        for answer in found:
            if isinstance(answer, BaseException) and not isinstance(answer, TopicNotFound):
                raise answer
        sound = [MessageLine.of(answer) for answer in found if not isinstance(answer, BaseException)]
        lines = with_damaged(sound, [answer.lost for answer in found if isinstance(answer, MessageDamaged)])
        return Looked(tuple(lines), "place", told, None, len(lines), 0.0)


def _told_of_search(wanted: Search) -> str:
    query = wanted.query
    if query.single:
        return gettext("No id or key here is “%(single)s”: searching the bodies for it.") % {"single": query.single}
    if query.is_empty:
        return gettext("All messages of that time.")
    return gettext("Messages with %(conditions)s.") % {"conditions": query.conditions}
