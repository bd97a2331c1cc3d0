"""Putting dead letters back, a step at a time: each step is a request of a page or a program, which so can stop.

A letter is booked before it is sent, by its place and time. So none is sent twice unless that is asked for, also when
two people do it at once; and of one whose answer was lost it is known that it is not known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.browse import read_cursor, write_cursor
from dashboard.cluster.errors import BrokerUnreachable, GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_search import Search
from dashboard.cluster.values import TopicDetail
from dashboard.dead_letters.letters import STEP_LETTERS, cause_of, is_before, passed
from dashboard.limits.names import NameRefused
from dashboard.models import PutBackRow, PutBackState
from gantrymq.client.results import LostMessage
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import RETRY_TOPIC

STEP_S = 2.0  # one step goes on for so long at most; the page then shows how far it came
PAGE_LETTERS = 32
RATE_DEFAULT, RATE_MAX = 10, 200  # letters a second
AT_ONCE_MAX = 4  # steps in this process; more are told to come again
TO_GROUP, TO_TOPIC = "group", "topic"
BEFORE = "before"  # left alone: put back before


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be put back, where to, how fast. is_again: also what was put back before. is_dry: only count.

    run: the number of the run that it is a part of.
    """

    wanted: Search
    to: str = TO_GROUP
    rate: int = RATE_DEFAULT
    is_again: bool = False
    is_dry: bool = False
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one letter. state: sent, failed, begun (not known) or before."""

    place: str
    message_id: str
    cause: str
    state: str
    told: str


@dataclass(slots=True)
class PutBackStep:
    """What one step did. matched: letters it dealt with; older: to go on from, None at the end."""

    begin: str
    scanned: int = 0
    matched: int = 0
    results: list[Result] = field(default_factory=list)
    older: str | None = None
    troubles: list[str] = field(default_factory=list)

    def count(self, state: str) -> int:
        return sum(result.state == state for result in self.results)


class PutBacks:
    """The steps of this process."""

    def __init__(self) -> None:
        self.running = 0

    async def step(
        self, source: Gateway, group: str, detail: TopicDetail, wish: Wish, *, older: str, username: str
    ) -> PutBackStep:
        """Go on from the cursor. Raises GatewayError; a broker that does not answer ends the step with a trouble."""
        if self.running >= AT_ONCE_MAX:
            raise TooManyPutBacks(gettext("Too many resend runs at once."))
        self.running += 1
        try:
            return await _Walk(source, group, detail, wish, older, username).run()
        finally:
            self.running -= 1


class TooManyPutBacks(GatewayError):
    """This process puts back as much as it may."""

    status = 503
    advice = gettext_noop("Wait for the others.")


class _Walk:
    """One step: newest first, from the cursor on."""

    def __init__(self, source: Gateway, group: str, detail: TopicDetail, wish: Wish, older: str, username: str) -> None:
        self._source, self._group, self._detail, self._wish, self._username = source, group, detail, wish, username
        # Without a cursor every queue begins at its end of now: what fails again meanwhile is above, and is not met.
        self._cursor = read_cursor(older) if older else {queue.key: queue.max_offset for queue in detail.queues}
        self._step = PutBackStep(begin=write_cursor(self._cursor))
        self._started = time.monotonic()

    async def run(self) -> PutBackStep:
        step = self._step
        while not self._is_over():
            page = await self._source.messages.newest(
                self._detail, limit=PAGE_LETTERS, before=self._cursor, queue=self._wish.wanted.queue
            )
            step.troubles += [f"{failure.what}: {failure.reason}" for failure in page.failures]
            self._tell_damaged(page.damaged)
            await self._wish.wanted.get_ready(page.messages)
            if step.troubles:
                break
            for letter in page.messages:
                if is_before(letter, self._wish.wanted):
                    return step
                step.scanned += 1
                self._cursor = passed(self._cursor, letter)
                if self._wish.wanted.matches(letter):
                    await self._deal_with(letter)
                if self._is_over():
                    break
            else:
                if page.older is None:
                    return step
                self._cursor = read_cursor(page.older)
        step.older = write_cursor(self._cursor)
        return step

    def _tell_damaged(self, damaged: Iterable[LostMessage]) -> None:
        """They can't be read, so they are never sent: failed, with the reason. A page may meet one again."""
        for lost in damaged:
            place = f"{lost.queue.broker_name}.{lost.queue.queue_id}.{lost.queue_offset}"
            if not self._wish.is_dry and all(result.place != place for result in self._step.results):
                self._step.results.append(Result(place, "", "", str(PutBackState.FAILED), f"damaged: {lost}"))

    def _is_over(self) -> bool:
        step = self._step
        is_long = time.monotonic() - self._started >= STEP_S and step.scanned > 0
        return bool(step.troubles) or step.scanned >= STEP_LETTERS or is_long

    async def _deal_with(self, letter: MessageExt) -> None:
        self._step.matched += 1
        if self._wish.is_dry:
            return
        row, is_mine = await self._booked(letter)
        if not is_mine:
            is_of_this_run = self._wish.run is not None and row.run_id == self._wish.run
            self._tell(letter, *((row.state, row.told) if is_of_this_run else (BEFORE, "resent before")))
            return
        try:
            row.told, row.state = await self._send(letter), PutBackState.SENT
        except BrokerUnreachable as exc:  # it may have been stored: not sent again unless that is asked for
            row.told, row.state = str(exc), PutBackState.BEGUN
            self._step.troubles.append(str(exc))
        except (GatewayError, NameRefused) as exc:  # refused before it was sent, or by the broker
            row.told, row.state = str(exc), PutBackState.FAILED
        row.told = row.told[: PutBackRow.TEXT_MAX]
        await row.asave(update_fields=["state", "told", "at"])
        self._tell(letter, row.state, row.told)
        await asyncio.sleep(max(0.0, self._started + self._paced() / self._wish.rate - time.monotonic()))

    def _paced(self) -> int:
        """How many letters have used their share of the time."""
        return len(self._step.results) - self._step.count(BEFORE)

    async def _booked(self, letter: MessageExt) -> tuple[PutBackRow, bool]:
        """The row of a letter, and whether it is to be sent now: not when it was put back before."""
        place = f"{letter.broker_name}.{letter.queue_id}.{letter.queue_offset}"
        facts = {
            "state": PutBackState.BEGUN, "told": "", "username": self._username, "at": timezone.now(),
            "target": self._group if self._wish.to == TO_GROUP else letter.properties.get(RETRY_TOPIC, "")[:255],
            "run_id": self._wish.run,
        }  # fmt: skip
        row, is_new = await PutBackRow.objects.aget_or_create(
            letter=f"{self._group} {place} {letter.store_timestamp}",
            defaults=facts | {"group": self._group, "place": place, "cause": cause_of(letter)[: PutBackRow.TEXT_MAX]},
        )
        if is_new:
            return row, True
        is_own = self._wish.run is not None and row.run_id == self._wish.run
        allowed = PutBackRow.objects.filter(pk=row.pk, at=row.at)  # as it was seen: of two at once, one goes on
        if not self._wish.is_again or is_own:  # a run that goes on meets what it sent before it was broken off
            allowed = allowed.filter(state=PutBackState.FAILED)
        is_mine = bool(await allowed.aupdate(**facts))
        return await PutBackRow.objects.aget(pk=row.pk), is_mine

    async def _send(self, letter: MessageExt) -> str:
        fate = self._source.fate
        is_to_group = self._wish.to == TO_GROUP
        sent = await (fate.put_back(letter, self._group) if is_to_group else fate.resend(letter))
        return sent.msg_id

    def _tell(self, letter: MessageExt, state: str, told: str) -> None:
        place = f"{letter.broker_name}.{letter.queue_id}.{letter.queue_offset}"
        self._step.results.append(Result(place, letter.msg_id, cause_of(letter), str(state), told))


def note_step(request: HttpRequest, name: str, step: PutBackStep) -> None:
    """Who put back how many, in the audit log; which ones stands in a table of its own."""
    if step.results:
        counts = {state: step.count(state) for state in ("sent", "failed", "begun", "before")}
        note(request, "dead letters resent", name, counts)
    else:
        note_nothing(request)


put_backs = PutBacks()
