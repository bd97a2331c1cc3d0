"""The columns of the tables of samples; kinds.py says what they mean. `at` is at_ms as a time."""

from __future__ import annotations

import pyarrow as pa

from gantrymq.contrib.arrow.columns import TIME

SCHEMAS = {  # of each kind, in the order of its fields
    "slaves": pa.schema(
        [
            ("at", TIME),
            ("broker", pa.string()),
            ("slave", pa.string()),
            ("behind_bytes", pa.int64()),
            ("behind_messages", pa.int64()),
            ("behind_seconds", pa.float64()),
            ("in_sync", pa.bool_()),
            ("bytes_per_second", pa.float64()),
            ("seconds", pa.int32()),
        ]
    ),
    "groups": pa.schema(
        [
            ("at", TIME),
            ("group", pa.string()),
            ("lag", pa.int64()),
            ("behind_seconds", pa.float64()),
            ("members", pa.int32()),
            ("consumer_offset", pa.int64()),
            ("end_offset", pa.int64()),
            ("last_consumed_ms", pa.int64()),
            ("looks", pa.int32()),
            ("stored", pa.int64()),
            ("consumed", pa.int64()),
            ("counted_minutes", pa.int32()),
        ]
    ),
    "brokers": pa.schema(
        [
            ("at", TIME),
            ("broker", pa.string()),
            ("in_rate", pa.float64()),
            ("out_rate", pa.float64()),
            ("disk_ratio", pa.float64()),
            ("commit_log_bytes", pa.int64()),
            ("seconds", pa.int32()),
        ]
    ),
}
