"""Putting messages into the outbox."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from datetime import datetime

from django.db import connections, router, transaction

from gantrymq.client.connection.send_codec import check_body, check_properties
from gantrymq.contrib.django import settings
from gantrymq.contrib.django.models import KEY_CHARS_MAX, UNSENT, OutboxMessage
from gantrymq.errors import GantryError, MessageRejected, WrongType
from gantrymq.message import properties as names
from gantrymq.message.ids import create_unique_id
from gantrymq.message.model import Message

COUNT_AGAIN_S = 5.0  # a process counts the rows so often; meanwhile it adds its own


class OutboxFull(GantryError):
    """The outbox holds `unsent_rows_max` messages that are not sent yet: is a relay running, is there a broker?"""


def put_in_outbox(message: Message, *, sharding_key: str | None = None, using: str | None = None) -> OutboxMessage:
    """Write the message as a row, in the current transaction: a relay sends it once that has committed, and never after
    a rollback. Delivery is at least once; `msg_id` of the row stays the same over all tries.

    sharding_key: messages of a topic with the same key are sent in the order in which their transactions committed,
    and to the same queue. On PostgreSQL transactions that write the same key therefore wait for each other; where two
    of them write several keys in different orders, the database ends one of them. using: the database.

    MessageRejected and WrongType for a message that no broker would take, OutboxFull when too many wait already.
    """
    row = _row(message, sharding_key)
    alias = using or router.db_for_write(OutboxMessage)
    _require_room(alias)
    with transaction.atomic(using=alias):
        if sharding_key is not None:
            _lock_key(alias, message.topic, sharding_key)
        row.save(using=alias, force_insert=True)
    return row


def _row(message: Message, sharding_key: str | None) -> OutboxMessage:
    if not isinstance(message, Message):
        raise WrongType(f"a Message is wanted, not {message!r:.60}: Message(topic, body) makes one")
    if sharding_key is not None and not isinstance(sharding_key, str):
        raise WrongType(f"sharding_key={sharding_key!r:.60}: a text is wanted")
    if sharding_key is not None and len(sharding_key) > KEY_CHARS_MAX:
        raise MessageRejected(f"sharding_key: {len(sharding_key)} characters, more than {KEY_CHARS_MAX}")
    producer = settings.current().producer
    check_body(
        message.body, **({"bytes_max": producer["message_bytes_max"]} if "message_bytes_max" in producer else {})
    )
    check_properties(message.encoded_properties())
    properties = dict(message.properties)
    msg_id = properties.pop(names.UNIQ_KEY, None) or create_unique_id()
    return OutboxMessage(
        topic=message.topic,
        sharding_key=sharding_key,
        msg_id=msg_id,
        tags=message.tags or "",
        keys=message.keys if isinstance(message.keys, str) else " ".join(message.keys),
        properties=properties,
        flag=message.flag,
        delay_level=message.delay_level,
        deliver_at=_deliver_at(message),
        body=message.body,
    )


def _deliver_at(message: Message) -> float | None:
    """A delay counts from now, not from when a relay comes to it."""
    if message.delay_seconds is not None:
        return time.time() + message.delay_seconds
    if isinstance(message.deliver_at, datetime):
        return message.deliver_at.timestamp()
    return message.deliver_at


def message_of(row: OutboxMessage) -> Message:
    """What was put into the outbox."""
    return Message(
        row.topic,
        bytes(row.body),
        tags=row.tags or None,
        keys=row.keys,
        properties={**row.properties, names.UNIQ_KEY: row.msg_id},
        flag=row.flag,
        delay_level=row.delay_level,
        deliver_at=row.deliver_at,
    )


def _lock_key(alias: str, *parts: str) -> None:
    """Until the transaction ends, no other one writes this key: else the first id could be the last to commit.

    SQLite has one writer at a time anyway. Other databases give ids in an order of their own; there the application's
    locks decide.
    """
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return
    digest = hashlib.blake2b("\0".join(("gantrymq", *parts)).encode(), digest_size=8).digest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(digest, "big", signed=True)])


class _Room:
    """How many more messages may wait: counted now and then, since counting reads a row each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted_at = -COUNT_AGAIN_S
        self._left = 0

    def take(self, alias: str, most: int, now: float) -> None:
        """Take the place of one message. OutboxFull when there is none."""
        with self._lock:
            if now - self._counted_at >= COUNT_AGAIN_S:
                unsent = OutboxMessage.objects.using(alias).filter(state__in=UNSENT)
                self._left = most - unsent[:most].count()
                self._counted_at = now
            if self._left <= 0:
                raise OutboxFull(f"the outbox holds {most} messages that are not sent: is a relay running?")
            self._left -= 1


_rooms: dict[str, _Room] = {}


def _require_room(alias: str) -> None:
    most = settings.current().outbox.unsent_rows_max
    _rooms.setdefault(alias, _Room()).take(alias, most, time.monotonic())


def forget_counts(aliases: Sequence[str] | None = None) -> None:
    """Have the next call count again, after rows were removed by other means. aliases: databases; None: all."""
    for alias in list(_rooms) if aliases is None else aliases:
        _rooms.pop(alias, None)
