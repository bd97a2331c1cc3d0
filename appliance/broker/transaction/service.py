"""Prepare, commit, roll back: what a producer asks for.

Where RocketMQ may store a committed message twice, this looks first. Its op message may have been lost in a crash, or
the end may come for a record that a check has rewritten meanwhile (or for both). For those, and only for those, the key
index tells whether the transaction was committed before, and which copies of it wait for an end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from appliance.broker.transaction import half as halves
from appliance.broker.transaction.ended import EndedHalves
from appliance.broker.transaction.half import HALF_QUEUE, HalfMessage
from appliance.errors import BrokerError
from gantrymq.errors import RecordError
from gantrymq.message import properties as keys
from gantrymq.message import sysflag
from gantrymq.message import topics as names
from gantrymq.message.record import RecordFields, split_record
from gantrymq.remoting.codes import ResponseCode
from store.base.results import PutMessageResult, PutMessageStatus
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

COPIES_MAX = 64  # of one half message, found by its key
ALL_TIMES = 1 << 62

_NOT_FOUND = "Find prepared transaction message failed"
_TOO_LONG = (
    ResponseCode.MESSAGE_ILLEGAL,
    "The message is illegal, maybe msg body or properties length not matched. msg body length limit "
    "{body_bytes_max}B, msg properties length limit 32KB.",
)
# What the producer is told of an end that could not be stored (../spec: put status -> response code).
_REFUSALS = {
    PutMessageStatus.CREATE_MAPED_FILE_FAILED: (ResponseCode.SYSTEM_ERROR, "Create mapped file failed."),
    PutMessageStatus.MESSAGE_ILLEGAL: _TOO_LONG,
    PutMessageStatus.PROPERTIES_SIZE_EXCEEDED: _TOO_LONG,
    PutMessageStatus.SERVICE_NOT_AVAILABLE: (ResponseCode.SERVICE_NOT_AVAILABLE, "Service not available now."),
    PutMessageStatus.OS_PAGE_CACHE_BUSY: (
        ResponseCode.SYSTEM_ERROR,
        "OS page cache busy, please try another machine",
    ),
}
_UNKNOWN_REFUSAL = (ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR")


@dataclass(slots=True)
class TransactionMetrics:
    """Counted since the start; what GET_BROKER_RUNTIME_INFO tells."""

    prepared: int = 0
    committed: int = 0
    rolled_back: int = 0
    left_open: int = 0  # ends that said "unknown"
    repeated: int = 0  # ends of transactions that had ended before: nothing was stored for them
    checks_sent: int = 0
    unanswerable: int = 0  # checks for which no producer of the group was there
    discarded: int = 0
    rounds: int = 0
    last_round_ms: int = 0  # when it began; 0: none yet
    last_round_took_ms: int = 0


class TransactionService:
    """Half messages of one broker.

    ended: what the op queue says (see ended.py). store_host: packed address of this broker, which op messages bear.
    clock: seconds since the epoch.
    """

    def __init__(
        self, store: MessageStore, ended: EndedHalves, store_host: bytes, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._clock = clock
        self.ended = ended
        self.store_host = store_host
        self.metrics = TransactionMetrics()
        self.owed_ops: dict[int, None] = {}  # halves that ended, but the store would not take their op message

    # -- metrics ------------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Half messages that wait for their end."""
        return max(self.ended.waiting(self._store) - len(self.owed_ops), 0)

    def begin_again(self, topic: str) -> None:
        """A queue was removed whose messages have all expired, and begins again at 0."""
        self.ended.begin_again(topic)
        if topic == names.TRANS_HALF_TOPIC:
            self.owed_ops.clear()

    # -- ending -------------------------------------------------------------------------------------------------------

    def find(self, group: str, half_offset: int, physical_offset: int) -> HalfMessage:
        """Return the half message that a producer means. BrokerError unless it is one, and the group's."""
        record = self._store.message_bytes(physical_offset) if physical_offset >= 0 else None
        if record is None:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, _NOT_FOUND)
        try:
            half = halves.read_half(record)
            half.real_place()
        except RecordError as exc:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, _NOT_FOUND) from exc
        if half.group != group:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
        if half.queue_offset != half_offset:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
        return half

    def commit(self, half: HalfMessage) -> int:
        """Store the message in its real topic, once. Return the log's end that holds it. BrokerError: not stored."""
        if self.has_ended(half.queue_offset):
            self.metrics.repeated += 1
            return self._store.max_physical_offset
        is_delicate = self._is_delicate(half)
        copies = self._other_copies(half) if is_delicate else []
        if is_delicate and self._was_committed(half):
            self.metrics.repeated += 1
            logger.info(
                "transaction was committed before",
                extra={"event": "transaction_committed_before", "queue_offset": half.queue_offset},
            )
        else:
            result = self._store.put_message(halves.committed(half))
            if result.status is not PutMessageStatus.PUT_OK:
                raise self._refusal(result)
            self.metrics.committed += 1
        for half_offset in (half.queue_offset, *copies):
            if not self._write_op(half_offset):
                self.owed_ops[half_offset] = None  # the next round writes it
        return self._store.max_physical_offset

    def roll_back(self, half: HalfMessage) -> int:
        """Note that the message stays hidden for ever. Return the log's end that holds it. BrokerError: not stored."""
        if self.has_ended(half.queue_offset):
            self.metrics.repeated += 1
            return self._store.max_physical_offset
        copies = self._other_copies(half) if self._is_delicate(half) else []
        for half_offset in (half.queue_offset, *copies):
            result = self._put_op(half_offset)
            if result.status is not PutMessageStatus.PUT_OK:
                raise self._refusal(result)
        self.metrics.rolled_back += 1
        return self._store.max_physical_offset

    def has_ended(self, half_offset: int) -> bool:
        """Whether an end of this record is known."""
        return half_offset in self.ended or half_offset in self.owed_ops

    def write_owed_ops(self) -> bool:
        """Write op messages that the store refused before. Returns whether none is owed any more."""
        for half_offset in list(self.owed_ops):
            if not self._write_op(half_offset):
                return False
            del self.owed_ops[half_offset]
        return True

    def _write_op(self, half_offset: int) -> bool:
        return self._put_op(half_offset).status is PutMessageStatus.PUT_OK

    def _put_op(self, half_offset: int) -> PutMessageResult:
        now_ms = int(self._clock() * 1000)
        result = self._store.put_message(halves.op_message(half_offset, HALF_QUEUE, now_ms, self.store_host))
        if result.status is PutMessageStatus.PUT_OK:
            self.ended.ended(half_offset, result.queue_offset)
        else:
            logger.warning(
                "op message not stored",
                extra={"event": "op_not_stored", "queue_offset": half_offset, "status": result.status.name},
            )
        return result

    # -- looking for what happened before -----------------------------------------------------------------------------

    def _is_delicate(self, half: HalfMessage) -> bool:
        """Whether this may not be the only record of the transaction, or its end may have come before."""
        return half.is_copy or self.ended.is_passed(half.queue_offset)

    def _other_copies(self, half: HalfMessage) -> list[int]:
        """Queue offsets of the same transaction's other records that wait for an end."""
        found = []
        for fields in self._with_key(names.TRANS_HALF_TOPIC, half):
            offset = fields.queue_offset
            if offset != half.queue_offset and not self.ended.is_passed(offset) and not self.has_ended(offset):
                found.append(offset)
        return found

    def _was_committed(self, half: HalfMessage) -> bool:
        topic, _ = half.real_place()
        return any(
            sysflag.transaction_type(fields.sys_flag) == sysflag.TRANSACTION_COMMIT
            for where in (topic, names.TIMER_TOPIC)  # there it waits when it has a time of its own
            for fields in self._with_key(where, half)
        )

    def _with_key(self, topic: str, half: HalfMessage) -> list[RecordFields]:
        """Records of a topic with the half's unique key, queue and producer group; [] for a half without such a key."""
        unique_key = half.unique_key
        if unique_key is None:
            return []
        found = []
        for record in self._store.query_message(topic, unique_key, COPIES_MAX, 0, ALL_TIMES).buffers:
            fields = split_record(record)
            properties = keys.decode_properties(fields.properties)
            if (
                fields.topic == topic.encode()
                and properties.get(keys.UNIQ_KEY) == unique_key
                and properties.get(keys.PGROUP) == half.group
                and properties.get(keys.REAL_QID) == half.properties.get(keys.REAL_QID)
            ):
                found.append(fields)
        return found

    def _refusal(self, result: PutMessageResult) -> BrokerError:
        code, remark = _REFUSALS.get(result.status, _UNKNOWN_REFUSAL)
        return BrokerError(code, remark.replace("{body_bytes_max}", str(self._store.config.message_bytes_max)))
