"""What memory still holds of the log: as in RocketMQ it is reckoned from the size of the machine's memory."""

from __future__ import annotations

from store import MessageStore
from store.reader import hot_bytes


def is_hot(store: MessageStore, physical_offset: int) -> bool:
    """Whether a record is so near the log's end that it is in memory (accessMessageInMemoryMaxRatio)."""
    return store.max_physical_offset - physical_offset <= hot_bytes(store.config)
