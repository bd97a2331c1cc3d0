"""Asks producers about transactions that they have not ended: a round every transactionCheckInterval.

A round walks the half queue from its progress to where the queue ended when the round began. What has ended is passed.
What is old enough is written again at the queue's end with its counter raised, and one live producer of its group is
asked (39) about that copy; so the progress, which is one offset, can pass it. What was asked too often goes to
TRANS_CHECK_MAX_TIME_TOPIC. A message whose own immunity lasts is written again unasked; unlike RocketMQ's, that does
not count as a check, so that no message is discarded before its producer was asked. The first message that is too
young ends the round: those behind it are younger.

The walk goes in slices of a few ms with pauses as long, and waits for clients that don't read. Progress is saved when
the copies that it relies on are on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.transaction import half as halves
from appliance.broker.transaction.ended import EndedHalves
from appliance.broker.transaction.half import HALF_QUEUE, HalfMessage, Verdict
from appliance.broker.transaction.service import TransactionService
from appliance.remoting.connection import ServerConnection
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message import topics as names
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from store.base.config import MessageStoreConfig
from store.base.errors import NotReadableNow
from store.base.results import HOPELESS, ConsumeQueueUnit, PutMessageResult, PutMessageStatus, StoreMessage
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

GROUP = "CID_RMQ_SYS_TRANS"  # whose consumer offsets are the progress
ROUND_S_MAX = 60.0  # RocketMQ: MAX_PROCESS_TIME_LIMIT
SLICE_S_MAX = 0.003
ENDED_MAX = 100_000  # halves known to have ended before they are passed between rounds; some 150 bytes each
LOOK_S = 1.0
PAUSE_S_MIN = 0.01  # between rounds, whatever the setting says
UNITS_A_READ = 32
CONGESTED_LOOK_S = 0.01
CONGESTED_LOOKS_MAX = 100  # a second: then those who don't read what they were asked have to see to it


def load_ended(store: MessageStore, offsets: ConsumerOffsetManager) -> EndedHalves:
    """Read which half messages have ended, from the progress on. Blocking; the store has been started."""
    half, op = (
        offsets.query(GROUP, topic, HALF_QUEUE) for topic in (names.TRANS_HALF_TOPIC, names.TRANS_OP_HALF_TOPIC)
    )
    return EndedHalves.load(store, half, op)


class _StoreRefuses(Exception):
    """The store takes nothing right now: the next round goes on from here."""


class TransactionCheckService:
    """Runs the rounds. clock: seconds since the epoch."""

    def __init__(
        self,
        transactions: TransactionService,
        store: MessageStore,
        topics: TopicConfigManager,
        offsets: ConsumerOffsetManager,
        producers: ProducerManager,
        stats: BrokerStatsManager,
        config: BrokerConfig,
        store_config: MessageStoreConfig,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._transactions = transactions
        self._ended = transactions.ended
        self._metrics = transactions.metrics
        self._store = store
        self._topics = topics
        self._offsets = offsets
        self._producers = producers
        self._stats = stats
        self._config = config
        self._store_config = store_config
        self._clock = clock
        self._asked: set[ServerConnection] = set()  # since the last pause

    # -- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Check each interval until cancelled; the first time after one interval."""
        try:
            while True:
                await self._wait_for_next_round(time.monotonic())
                await self.round()
        finally:
            self._commit_progress()  # an interrupted round's too: the store flushes after us

    async def _wait_for_next_round(self, since: float) -> None:
        """Sleep for an interval, as it is set now; keep what ends meanwhile from filling the memory."""
        await asyncio.sleep(PAUSE_S_MIN)
        while (left_s := since + self._config.transaction_check_interval_ms / 1000 - time.monotonic()) > 0:
            await asyncio.sleep(min(left_s, LOOK_S))
            self._name_topics()
            if self._ended.count_ahead > ENDED_MAX:
                await self.pass_ended()

    def _name_topics(self) -> None:
        """Have name servers know both topics once they hold messages: who reads them finds what the folder has."""
        for topic in (names.TRANS_HALF_TOPIC, names.TRANS_OP_HALF_TOPIC):
            if self._store.max_offset(topic, HALF_QUEUE):
                self._topics.create_transaction_topic(topic)

    async def pass_ended(self) -> None:
        """Pass what has ended up to the first half that has not: no round, no producer is asked."""
        while self._ended.position in self._ended:
            stop_at = time.monotonic() + SLICE_S_MAX
            while self._ended.position in self._ended and time.monotonic() < stop_at:
                self._ended.pass_one()
            await asyncio.sleep(SLICE_S_MAX)
        await self._save_progress()

    async def round(self) -> None:
        """One round. What goes wrong in it is told, and tried again in the next one."""
        metrics, began = self._metrics, time.monotonic()
        before = metrics.checks_sent, metrics.discarded
        now_ms = int(self._clock() * 1000)
        self._topics.create_transaction_topic(names.TRANS_HALF_TOPIC)  # as RocketMQ does, also without a transaction
        try:
            if not self._transactions.write_owed_ops():
                raise _StoreRefuses("an op message")
            await self._walk(now_ms)
        except _StoreRefuses as exc:
            logger.warning(
                "transaction check interrupted", extra={"event": "transaction_check_interrupted", "why": str(exc)}
            )
        await self._save_progress()
        self._ended.round_ended()
        metrics.rounds += 1
        metrics.last_round_ms = now_ms
        metrics.last_round_took_ms = int((time.monotonic() - began) * 1000)
        sent, discarded = metrics.checks_sent - before[0], metrics.discarded - before[1]
        logger.log(
            logging.INFO if sent or discarded else logging.DEBUG,
            "transactions checked",
            extra={
                "event": "transactions_checked",
                "pending": self._transactions.pending,
                "checks_sent": sent,
                "discarded": discarded,
                "milliseconds": metrics.last_round_took_ms,
            },
        )

    # -- the walk -----------------------------------------------------------------------------------------------------

    async def _walk(self, now_ms: int) -> None:
        end = self._store.max_offset(names.TRANS_HALF_TOPIC, HALF_QUEUE)
        deadline = time.monotonic() + ROUND_S_MAX
        while self._ended.position < end and time.monotonic() < deadline:
            if not self._slice(end, now_ms):
                return
            await self._pause()
            end = min(end, self._store.max_offset(names.TRANS_HALF_TOPIC, HALF_QUEUE))  # it may have begun again

    def _slice(self, end: int, now_ms: int) -> bool:
        """Walk for SLICE_S_MAX. Returns False at a message that is too young."""
        ended = self._ended
        stop_at = time.monotonic() + SLICE_S_MAX
        while ended.position < end and time.monotonic() < stop_at:
            if self._transactions.has_ended(ended.position):
                ended.pass_one()
                continue
            count = min(UNITS_A_READ, end - ended.position)
            read = self._store.consume_queue_units
            units = read(names.TRANS_HALF_TOPIC, HALF_QUEUE, ended.position, count)
            units = units or read(names.TRANS_HALF_TOPIC, HALF_QUEUE, ended.position, 1)  # a later one may be at fault
            if not units:
                self._skip_gone(end)
                continue
            for unit in units:
                if not self._transactions.has_ended(ended.position) and not self._look_at(unit, now_ms):
                    return False
                ended.pass_one()
                if time.monotonic() >= stop_at:
                    break
        return True

    async def _pause(self) -> None:
        """Let other work have a turn; wait, within limits, for clients that have much to read."""
        await asyncio.sleep(SLICE_S_MAX)
        for _ in range(CONGESTED_LOOKS_MAX):
            if not any(each.is_congested for each in self._asked):
                break
            await asyncio.sleep(CONGESTED_LOOK_S)
        self._asked.clear()

    def _skip_gone(self, end: int) -> None:
        """Nothing can be read at the position: follow a queue whose files were deleted, or pass a hole."""
        position = self._ended.position
        try:
            self._store.message_at(names.TRANS_HALF_TOPIC, HALF_QUEUE, position)
        except NotReadableNow as exc:
            raise _StoreRefuses(str(exc)) from exc
        corrected = min(max(position + 1, self._store.min_offset(names.TRANS_HALF_TOPIC, HALF_QUEUE)), end)
        logger.warning(
            "half messages are gone",
            extra={"event": "half_messages_gone", "queue_offset": position, "corrected": corrected},
        )
        self._ended.skip_to(corrected)

    def _look_at(self, unit: ConsumeQueueUnit, now_ms: int) -> bool:
        """Deal with the half at the position. Returns False when it is too young to be dealt with."""
        record = self._store.message_bytes(unit.physical_offset)
        try:
            if record is None:
                raise RecordError("its record is gone")
            half = halves.read_half(record)
            half.real_place()
        except RecordError as exc:
            logger.error(
                "half message can't be read, skipped",
                extra={"event": "half_skipped", "queue_offset": self._ended.position, "why": str(exc)},
            )
            return True
        self._stats.inc_group_get(GROUP, names.TRANS_HALF_TOPIC, 1, len(record))
        if half.first_queue_offset >= 0 and half.first_queue_offset in self._ended:
            return True  # RocketMQ notes such an end for the first record only
        decided = halves.verdict(
            half,
            now_ms,
            timeout_ms=self._config.transaction_timeout_ms,
            check_times_max=self._config.transaction_check_max,
            reserved_ms=self._store_config.file_reserved_hours * 3_600_000,
        )
        if decided is Verdict.WAIT:
            return False
        if decided is Verdict.KEEP:
            first = half.first_queue_offset if half.first_queue_offset >= 0 else half.queue_offset
            if self._put(halves.prepared_again(half, {keys.TRAN_PREPARED_QUEUE_OFFSET: str(first)})) is None:
                self._check(half)
        elif decided is Verdict.CHECK:
            self._check(half)
        else:
            self._discard(half)
        return True

    # -- what a half message may get ----------------------------------------------------------------------------------

    def _check(self, half: HalfMessage) -> None:
        times = half.check_times + 1
        result = self._put(halves.prepared_again(half, {keys.TRANSACTION_CHECK_TIMES: str(times)}))
        if result is None:  # no room for the counter in its properties: it could be asked about for ever
            self._discard(half)
            return
        member = self._producers.pick(half.group or "", half.properties.get(keys.REAL_TOPIC, ""))
        if member is None:
            self._metrics.unanswerable += 1
            logger.debug(
                "no producer to ask", extra={"event": "no_producer_to_ask", "group": half.group, "check_times": times}
            )
            return
        fields, body = halves.check_request(half, times, result.queue_offset, result.physical_offset)
        member.connection.invoke_oneway(RemotingCommand.request(RequestCode.CHECK_TRANSACTION_STATE, fields, body))
        self._asked.add(member.connection)
        self._metrics.checks_sent += 1

    def _discard(self, half: HalfMessage) -> None:
        topic = self._topics.create_check_max_time_topic().topic_name
        is_old = half.check_times < self._config.transaction_check_max
        changes = {keys.TRANSACTION_CHECK_TIMES: str(half.check_times + 1)} if is_old else {}
        if self._put(halves.discarded(half, changes)) is None:
            self._put(halves.discarded(half, {}))
        self._metrics.discarded += 1
        logger.error(
            "transaction discarded: no producer ended it",
            extra={
                "event": "transaction_discarded",
                "group": half.group,
                "unique_key": half.unique_key,
                "check_times": half.check_times,
                "moved_to": topic,
            },
        )

    def _put(self, message: StoreMessage) -> PutMessageResult | None:
        """Store a message; None when no store will ever take it. _StoreRefuses when this one doesn't now."""
        result = self._store.put_message(message, delay=False)
        if result.status is PutMessageStatus.PUT_OK:
            return result
        if result.status in HOPELESS:
            return None
        raise _StoreRefuses(f"{message.topic}: {result.status.name}")

    # -- progress -----------------------------------------------------------------------------------------------------

    async def _save_progress(self) -> None:
        """Commit the offsets once what they pass by is on disk; on a slow disk the next round does it."""
        if await self._store.until_flushed():
            self._commit_progress()

    def _commit_progress(self) -> None:
        op_end = self._store.max_offset(names.TRANS_OP_HALF_TOPIC, HALF_QUEUE)
        position, op_progress = self._ended.position, self._ended.op_progress(op_end)
        for topic, offset in ((names.TRANS_HALF_TOPIC, position), (names.TRANS_OP_HALF_TOPIC, op_progress)):
            if offset or self._offsets.query(GROUP, topic, HALF_QUEUE) >= 0:
                self._offsets.commit(GROUP, topic, HALF_QUEUE, offset)
