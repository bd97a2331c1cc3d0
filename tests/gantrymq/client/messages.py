"""Stored messages made up for tests."""

from __future__ import annotations

from gantrymq.message.model import MessageExt


def stored(offset: int, body: bytes = b"body", *, topic: str = "T", **properties: str) -> MessageExt:
    return MessageExt(
        topic=topic, body=body, flag=0, properties=properties, queue_id=0, queue_offset=offset,
        physical_offset=1000 + offset, store_size=100, sys_flag=0, born_timestamp=1, born_host=("127.0.0.1", 1),
        store_timestamp=2, store_host=("127.0.0.1", 10911), reconsume_times=0, prepared_transaction_offset=0,
        body_crc=0, broker_name="b",
    )  # fmt: skip
