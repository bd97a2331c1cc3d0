"""A stored message that has every field."""

from __future__ import annotations

from gantrymq.message.model import MessageExt

MESSAGE = MessageExt(
    topic="Orders", body=b"hello", flag=7, properties={"TAGS": "TagA", "KEYS": "k1 k2"}, queue_id=3, queue_offset=11,
    physical_offset=4096, store_size=0, sys_flag=0, born_timestamp=1_700_000_000_000, born_host=("10.0.0.1", 40000),
    store_timestamp=1_700_000_000_005, store_host=("10.0.0.2", 10911), reconsume_times=2,
    prepared_transaction_offset=99, body_crc=0x3610A686,
)  # fmt: skip
