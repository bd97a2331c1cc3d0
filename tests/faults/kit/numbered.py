"""A store of numbered messages: put one, and see which are there."""

from __future__ import annotations

from gantrymq.message import record
from store import MessageStore, PutMessageStatus
from tests.store.conftest import message, read_all

BODY = bytes(1000)


def put(store: MessageStore, number: int) -> PutMessageStatus:
    return store.put_message(message(b"%06d" % number + BODY, keys=f"k{number}")).status


def numbers(store: MessageStore) -> list[int]:
    return [int(record.decode_record(raw).body[:6]) for raw in read_all(store, "T")]
