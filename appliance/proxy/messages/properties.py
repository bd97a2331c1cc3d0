"""Properties of a message that have a meaning to RocketMQ: clients can't use these names, and don't see them."""

from __future__ import annotations

from gantrymq.message import properties as names

SHARDING_KEY = "__SHARDINGKEY"
BORN_HOST = "__BORNHOST"
BORN_TIMESTAMP = "BORN_TIMESTAMP"
TRACE_CONTEXT = "TRACE_CONTEXT"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
POP_CK = "POP_CK"

# RocketMQ 5: MessageConst.STRING_HASH_SET, and what GantryMQ notes beside a failure
RESERVED = frozenset(
    {
        *(value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and len(value) > 1),
        SHARDING_KEY,
        BORN_HOST,
        BORN_TIMESTAMP,
        TRACE_CONTEXT,
        DLQ_ORIGIN_TOPIC,
        DLQ_ORIGIN_MESSAGE_ID,
        POP_CK,
        "1ST_POP_TIME",
        "POP_CK_OFFSET",
        "EXTEND_UNIQ_INFO",
        "INNER_NUM",
        "INNER_BASE",
        "DUP_INFO",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "CRC32#",
        "__LITE_TOPIC",
        "_SYS_MSG_PRIORITY_",
    }
)
