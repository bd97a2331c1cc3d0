"""Transactions: a prepared send (on its way through send.py), its end (37), and checking it again (323)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from appliance.broker.replication.master.put_waits import PutWaits
from appliance.broker.transaction import half as halves
from appliance.broker.transaction.service import TransactionService
from appliance.errors import BrokerError
from appliance.remoting.header_fields import FieldError, int_field, long_field, quoted
from appliance.remoting.send_request import SendFields
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import RecordError
from gantrymq.log_limit import LogLimit
from gantrymq.message import properties as keys
from gantrymq.message import sysflag
from gantrymq.message import topics as names
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.record import split_record
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.results import PutMessageStatus, StoreMessage
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)
_log_limit = LogLimit()  # all are counted, a few are told

OUTCOMES = (sysflag.TRANSACTION_NONE, sysflag.TRANSACTION_COMMIT, sysflag.TRANSACTION_ROLLBACK)
RESUMABLE = (names.TRANS_HALF_TOPIC, names.TRANS_CHECK_MAX_TIME_TOPIC)
HALF_PROPERTIES_BYTES_MAX = keys.PROPERTIES_BYTES_MAX - halves.RESERVED_PROPERTIES_BYTES
_NOT_RESUMED = "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed."


class TransactionParts(Protocol):
    """What these handlers use of the broker."""

    store: MessageStore
    put_waits: PutWaits
    transactions: TransactionService


# -- prepared sends ---------------------------------------------------------------------------------------------------


def half_message(
    config: BrokerConfig,
    store_host: bytes,
    connection: ServerConnection,
    body: bytes,
    fields: SendFields,
    topic: str,
    queue_id: int,
) -> tuple[StoreMessage, bool] | None:
    """Return the half message that a send means, and whether its answer waits for the disk; None for a plain send.

    Called for every send that mentions TRAN_MSG or has transaction bits. Nothing is stored yet. Raises BrokerError: 16
    while transactions are rejected, 13 for what would be stored and never be seen again.
    """
    properties = keys.decode_properties(fields.properties)
    if not _is_prepared(properties, fields.sys_flag, topic):
        return None
    _check_prepared(config, properties)
    is_waiting = properties.get(keys.WAIT, "true").lower() == "true"
    encoded = halves.prepared_properties(properties, config.cluster_name, topic, queue_id)
    if len(encoded) > HALF_PROPERTIES_BYTES_MAX:
        raise BrokerError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"the message is illegal, a transactional message's properties take {len(encoded)} bytes, more than "
            f"{HALF_PROPERTIES_BYTES_MAX}: msg properties length limit 32KB, less what the broker adds",
        )
    sys_flag = fields.sys_flag & ~sysflag.TRANSACTION_MASK  # the bits come back with the commit
    message = StoreMessage(
        names.TRANS_HALF_TOPIC, halves.HALF_QUEUE, body, encoded, fields.flag, sys_flag,
        fields.born_timestamp, connection.born_host, store_host, fields.reconsume_times,
    )  # fmt: skip
    return message, is_waiting


def _is_prepared(properties: dict[str, str], sys_flag: int, topic: str) -> bool:
    """Whether a send is a prepared one. BrokerError for bits that would hide a plain message for ever."""
    if properties.get(keys.TRAN_MSG, "").lower() == "true":
        # clients before 4.6.1 leave the property in what they send to be consumed again
        return not topic.startswith((names.RETRY_PREFIX, names.DLQ_PREFIX))
    if sys_flag & sysflag.TRANSACTION_MASK in (sysflag.TRANSACTION_PREPARED, sysflag.TRANSACTION_ROLLBACK):
        raise BrokerError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"sysFlag {sys_flag} marks a prepared or rolled back message, but its property "
            f"{keys.TRAN_MSG} is not true: no consumer would ever see it",
        )
    return False


def _check_prepared(config: BrokerConfig, properties: dict[str, str]) -> None:
    """Raise BrokerError for a prepared send that is not allowed, or could not be ended."""
    if config.reject_transaction_message:
        raise BrokerError(
            ResponseCode.NO_PERMISSION,
            f"the broker[{config.advertised_address_host}] sending transaction message is forbidden",
        )
    if keys.DELAY in properties:
        raise BrokerError(
            ResponseCode.MESSAGE_ILLEGAL, f"a transactional message can't be delayed: leave {keys.DELAY} out"
        )
    if keys.PGROUP not in properties:
        raise BrokerError(
            ResponseCode.MESSAGE_ILLEGAL,
            f"a transactional message says its producer group in the property {keys.PGROUP}: no other group may end it",
        )


# -- their end --------------------------------------------------------------------------------------------------------


def end_transaction(
    parts: TransactionParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand | None:
    """37: commit or roll back. "Unknown" gets no answer, as in RocketMQ; with SYNC_FLUSH others wait for the disk."""
    fields = request.ext_fields
    group, outcome = fields["producerGroup"], int_field(fields, "commitOrRollback")
    half_offset, physical_offset = long_field(fields, "tranStateTableOffset"), long_field(fields, "commitLogOffset")
    if outcome not in OUTCOMES:
        raise FieldError(f"commitOrRollback={outcome}: use 8 (commit), 12 (roll back) or 0 (unknown)")
    transactions = parts.transactions
    if outcome == sysflag.TRANSACTION_NONE:
        transactions.metrics.left_open += 1
        if _log_limit.allows("transaction_left_open", connection.remote_address[0]):
            logger.info(
                "transaction left open",
                extra={
                    "event": "transaction_left_open",
                    "group": group,
                    "queue_offset": half_offset,
                    "is_answer": fields.get("fromTransactionCheck") == "true",
                    "peer": connection.remote_text,
                },
            )
        return None
    half = transactions.find(group, half_offset, physical_offset)
    if outcome == sysflag.TRANSACTION_COMMIT:
        end_offset = transactions.commit(half)
    else:
        end_offset = transactions.roll_back(half)
    if request.is_oneway or not parts.put_waits.is_needed:
        return request.reply()

    def stored(code: ResponseCode) -> None:  # stored is stored, so a slow disk or slave is no error
        connection.reply(request, request.reply())

    parts.put_waits.when_stored(end_offset, stored)
    return None


def resume_check(parts: TransactionParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """323: a transaction that was checked too often is checked again. BrokerError 1: not found, not stored."""
    message_id = request.ext_fields["msgId"]
    try:
        _, _, physical_offset = decode_offset_message_id(message_id)
    except ValueError as exc:
        raise FieldError(f"header field msgId={quoted(message_id)} is not an offset message id") from exc
    record = parts.store.message_bytes(physical_offset) if physical_offset >= 0 else None
    try:
        if record is None:
            raise RecordError("no record starts there")
        fields = split_record(record)
        if fields.topic.decode(errors="replace") not in RESUMABLE:
            raise RecordError("it is not a half message")
        body = record[fields.body_position : fields.body_position + fields.body_bytes]
        half = halves.HalfMessage(fields, body, keys.decode_properties(fields.properties))
        half.real_place()
    except RecordError as exc:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{_NOT_RESUMED} {message_id}: {exc}") from exc
    result = parts.store.put_message(halves.resumed(half), delay=False)
    if result.status is not PutMessageStatus.PUT_OK:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{_NOT_RESUMED} {result.status.name}")
    return request.reply()
