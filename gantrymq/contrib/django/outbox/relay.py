"""The relay: sends what the outbox holds, tries again what failed, removes what is old.

A message that can't be sent now (no broker, no answer, a busy one) is tried again for ever, after growing pauses. One
that is refused is tried `refusals_max` times, then it is FAILED and waits for a person; one that no broker would take
is FAILED at once. Messages with the same key wait behind it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import timedelta
from types import TracebackType
from typing import Self

from django.db import DatabaseError, InterfaceError, close_old_connections, reset_queries, transaction
from django.db.models import Q
from django.utils import timezone

from gantrymq.client.blocking.producer import SyncProducer
from gantrymq.client.produce.retry import may_pass
from gantrymq.client.results import SendResult
from gantrymq.contrib.django.models import OutboxMessage, OutboxState, can_lock_rows
from gantrymq.contrib.django.outbox.choosing import Chain, chosen
from gantrymq.contrib.django.outbox.writing import message_of
from gantrymq.contrib.django.settings import POWER_MAX, GantrySettings, OutboxSettings
from gantrymq.errors import ClientClosed, GantryError, MessageRejected, WrongType

logger: logging.Logger = logging.getLogger(__name__)

LEASE_SENDS = (
    6  # a process that reserves rows does so for the time of as many sends, and begins none in its second half
)
CLEAN_EACH_S = 10.0
DATABASE_PAUSE_S_MAX = 30.0
ERROR_CHARS = 500
NOTED = ("state", "tries", "refusals", "next_try_at", "reserved_until", "ended_at", "error", "place")

Outcome = SendResult | Exception  # an interceptor of the project may raise anything


class Relay:
    """One process's relay, with a producer of its own; `with Relay(…) as relay` opens and closes that."""

    def __init__(self, project: GantrySettings, alias: str) -> None:
        self._own = project.outbox
        self._alias = alias
        keywords = {**project.producer, "delivery_timeout_s": project.outbox.send_timeout_s}
        self._producer = SyncProducer(project.name_servers, **keywords)
        self._cleaned_at = -CLEAN_EACH_S

    def __enter__(self) -> Self:
        self._producer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer.close()

    def run(self, stopped: threading.Event) -> int:
        """Relay until `stopped` is set; a batch that is being sent ends first. Returns how many were sent."""
        sent, failures = 0, 0
        while not stopped.is_set():
            close_old_connections()
            reset_queries()
            try:
                done, tried = self.batch(stopped)
                self._clean_now_and_then()
                failures = 0
            except (DatabaseError, InterfaceError) as exc:  # restarted, busy, not migrated: it may come back
                failures += 1
                wait_s = min(self._own.poll_s * 2 ** min(failures, POWER_MAX), DATABASE_PAUSE_S_MAX)
                logger.warning(
                    "the outbox's database fails, next attempt in %s s: %s",
                    wait_s,
                    exc,
                    extra={"event": "outbox_database_failed", "wait_s": wait_s, "error": str(exc)},
                )
                stopped.wait(wait_s)
                continue
            sent += done
            if not tried or not done:
                stopped.wait(self._own.poll_s)
        return sent

    def run_once(self, stopped: threading.Event) -> int:
        """Relay until nothing is due, then clean. Returns how many were sent."""
        sent = 0
        while not stopped.is_set():
            done, tried = self.batch(stopped)
            sent += done
            if not tried:
                break
        clean(self._alias, self._own)
        return sent

    def batch(self, stopped: threading.Event) -> tuple[int, int]:
        """Send one batch. Returns how many messages were sent, and how many were tried."""
        ends_at = time.monotonic() + self._own.lease_s / 2
        sent = tried = 0
        with chosen(self._alias, self._own.batch, self._own.lease_s) as chains:
            untouched: list[OutboxMessage] = [row for chain in chains for row in chain]
            while chains and not stopped.is_set() and time.monotonic() < ends_at:
                outcomes = self._send([chain[0] for chain in chains])
                rows = [chain[0] for chain, outcome in zip(chains, outcomes, strict=True) if outcome is not None]
                self._note([(c[0], o) for c, o in zip(chains, outcomes, strict=True) if o is not None])
                sent += sum(isinstance(outcome, SendResult) for outcome in outcomes)
                tried += len(rows)
                untouched = [row for row in untouched if row not in rows]
                chains = _rest(chains, outcomes)
            if not can_lock_rows(self._alias):  # give back what was reserved
                ids = [row.pk for row in untouched]
                OutboxMessage.objects.using(self._alias).filter(pk__in=ids).update(reserved_until=None)
        return sent, tried

    def _send(self, rows: Sequence[OutboxMessage]) -> list[Outcome | None]:
        """The outcome of each, None of what was not tried. All are on their way at once; no two have the same key."""
        begun = [self._begin(row) for row in rows]
        self._producer.flush()
        outcomes = [_outcome(each) for each in begun]
        return [None if isinstance(each, ClientClosed) else each for each in outcomes]

    def _begin(self, row: OutboxMessage) -> Future[SendResult] | Exception:
        try:
            return self._producer.send_soon(message_of(row), sharding_key=row.sharding_key)
        except Exception as exc:  # whatever it is, it belongs to this message: the others go on
            return exc

    def _note(self, outcomes: Sequence[tuple[OutboxMessage, Outcome]]) -> None:
        now = timezone.now()
        with transaction.atomic(using=self._alias):
            for row, outcome in outcomes:
                row.tries += 1
                if isinstance(outcome, SendResult):
                    row.state, row.ended_at, row.error = OutboxState.SENT, now, ""
                    queue = outcome.queue
                    row.place = f"{queue.broker_name} queue {queue.queue_id} offset {outcome.queue_offset}"
                else:
                    self._note_failure(row, outcome)
                row.save(
                    using=self._alias,
                    update_fields=NOTED,
                )

    def _note_failure(self, row: OutboxMessage, failure: Exception) -> None:
        row.error = f"{type(failure).__name__}: {failure}"[:ERROR_CHARS]
        row.next_try_at = timezone.now() + timedelta(seconds=self._own.pause_s(row.tries))
        row.reserved_until = None
        if not (isinstance(failure, GantryError) and may_pass(failure)):
            row.refusals += 1
        is_hopeless = isinstance(failure, MessageRejected | WrongType) or row.refusals >= self._own.refusals_max
        if is_hopeless:
            row.state = OutboxState.FAILED
        logger.log(
            logging.ERROR if is_hopeless else logging.WARNING,
            "outbox message %s to %s after attempt %s: %s",
            row.msg_id,
            row.topic,
            row.tries,
            row.error,
            extra={
                "event": "outbox_not_sent",
                "msg_id": row.msg_id,
                "topic": row.topic,
                "tries": row.tries,
                "error": row.error,
            },
        )

    def _clean_now_and_then(self) -> None:
        if time.monotonic() - self._cleaned_at >= CLEAN_EACH_S:
            clean(self._alias, self._own)
            self._cleaned_at = time.monotonic()


def _outcome(begun: Future[SendResult] | Exception) -> Outcome:
    if isinstance(begun, Exception):
        return begun
    failure = begun.exception()
    if failure is None:
        return begun.result()
    if isinstance(failure, Exception):
        return failure
    raise failure


def _rest(chains: list[Chain], outcomes: Sequence[Outcome | None]) -> list[Chain]:
    """What is left of the chains whose first message was sent; behind a failure nothing goes."""
    pairs = zip(chains, outcomes, strict=True)
    return [chain[1:] for chain, outcome in pairs if isinstance(outcome, SendResult) and len(chain) > 1]


STEP_ROWS = 1000  # removed in one transaction
ENDED = (OutboxState.SENT, OutboxState.DISCARDED)


def clean(alias: str, own: OutboxSettings) -> int:
    """Remove what ended more than `keep_sent_s` ago, and of the rest all but the latest `keep_sent_rows`. Unsent
    messages stay. Several processes may do so at once. Returns how many rows are gone."""
    ended = OutboxMessage.objects.using(alias).filter(state__in=ENDED)
    old = Q(ended_at__lt=timezone.now() - timedelta(seconds=own.keep_sent_s))
    beyond = ended.order_by("-ended_at").values_list("ended_at", flat=True)[own.keep_sent_rows : own.keep_sent_rows + 1]
    for first_too_many in beyond:
        old |= Q(ended_at__lte=first_too_many)
    gone = 0
    while ids := list(ended.filter(old).values_list("pk", flat=True)[:STEP_ROWS]):
        gone += OutboxMessage.objects.using(alias).filter(pk__in=ids, state__in=ENDED).delete()[0]
    return gone
