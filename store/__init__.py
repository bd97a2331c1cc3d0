"""The message store: RocketMQ's files, kept by one process.

    <root>/commitlog/<20 digits>                   records one after the other (gantrymq.message.record); the file's
    name is the offset of its first byte; each ends with a blank record
    <root>/consumequeue/<topic>/<queue>/<20 digits>  20-byte units: where a message lies, its size, its tag's hash
    <root>/index/<17 digits>                       hash tables from keys to offsets, named by their local time of birth
    <root>/checkpoint  abort  lock                 how far the disk has it; unclean stop; one process only
    <root>/gantry.format  othersBytes.json         not RocketMQ's: the folder's format; what others held on its disk

A file has its full size from birth and is sparse. What is promised, and what a crash leaves, stands in recovery.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from store.base.config import MessageStoreConfig
from store.base.errors import NewerFormat, StampDamaged, StoreDamaged, StoreError, StoreLocked, StoreNotRunning
from store.base.results import (
    ConsumeQueueUnit,
    GetMessageResult,
    GetMessageStatus,
    PutMessageResult,
    PutMessageStatus,
    QueryMessageResult,
    StoreBatch,
    StoreMessage,
)
from store.base.running_state import RunningFlags

if TYPE_CHECKING:
    from store.message_store import MessageStore
    from store.queues.filter import TagFilter

__all__ = [
    "ConsumeQueueUnit",
    "GetMessageResult",
    "GetMessageStatus",
    "MessageStore",
    "MessageStoreConfig",
    "NewerFormat",
    "PutMessageResult",
    "PutMessageStatus",
    "QueryMessageResult",
    "RunningFlags",
    "StampDamaged",
    "StoreBatch",
    "StoreDamaged",
    "StoreError",
    "StoreLocked",
    "StoreMessage",
    "StoreNotRunning",
    "TagFilter",
]

_LATER = {"MessageStore": "store.message_store", "TagFilter": "store.queues.filter"}


if not TYPE_CHECKING:  # which would find any name here

    def __getattr__(name: str) -> Any:
        """The store is loaded where one is kept: every process imports this package for its settings and errors."""
        if name in _LATER:
            return getattr(import_module(_LATER[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
