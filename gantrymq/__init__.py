"""GantryMQ's client SDK for RocketMQ 4.9 brokers.

    from gantrymq import Message, SyncProducer

    with SyncProducer("127.0.0.1:9876") as producer:
        print(producer.send(Message("demo", b"hello")))

The names below are the public ones. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gantrymq import errors
    from gantrymq.client.admin import AdminClient
    from gantrymq.message.model import Message, MessageExt, MessageQueue

__version__ = "0.1.0"

__all__ = [
    "AdminClient",
    "Message",
    "MessageExt",
    "MessageQueue",
    "errors",
]

_HOMES = {
    "AdminClient": "gantrymq.client.admin",
    "Message": "gantrymq.message.model",
    "MessageExt": "gantrymq.message.model",
    "MessageQueue": "gantrymq.message.model",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("gantrymq.errors")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
