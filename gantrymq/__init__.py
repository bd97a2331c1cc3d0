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
    from gantrymq.client.blocking import SyncProducer, SyncPullConsumer, SyncPushConsumer
    from gantrymq.client.producer import Producer
    from gantrymq.client.pull_consumer import PullConsumer
    from gantrymq.client.pulling import FlowLimits
    from gantrymq.client.push_consumer import PushConsumer
    from gantrymq.client.request_reply import reply_to
    from gantrymq.client.results import ConsumeResult, SendResult, SendStatus
    from gantrymq.client.subscription import ConsumeFrom, MessageModel
    from gantrymq.client.transaction import (
        TransactionListener,
        TransactionProducer,
        TransactionResult,
        TransactionState,
    )
    from gantrymq.client.transaction_blocking import SyncTransactionProducer
    from gantrymq.message.model import Message, MessageExt, MessageQueue
    from gantrymq.remoting.signature import Credentials
    from gantrymq.remoting.tls import TlsConfig

__version__ = "0.1.0"

__all__ = [
    "AdminClient",
    "ConsumeFrom",
    "ConsumeResult",
    "Credentials",
    "FlowLimits",
    "Message",
    "MessageExt",
    "MessageModel",
    "MessageQueue",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "SendResult",
    "SendStatus",
    "SyncProducer",
    "SyncPullConsumer",
    "SyncPushConsumer",
    "SyncTransactionProducer",
    "TlsConfig",
    "TransactionListener",
    "TransactionProducer",
    "TransactionResult",
    "TransactionState",
    "errors",
    "reply_to",
]

_HOMES = {
    "AdminClient": "gantrymq.client.admin",
    "ConsumeFrom": "gantrymq.client.subscription",
    "ConsumeResult": "gantrymq.client.results",
    "Credentials": "gantrymq.remoting.signature",
    "FlowLimits": "gantrymq.client.pulling",
    "Message": "gantrymq.message.model",
    "MessageExt": "gantrymq.message.model",
    "MessageModel": "gantrymq.client.subscription",
    "MessageQueue": "gantrymq.message.model",
    "Producer": "gantrymq.client.producer",
    "PullConsumer": "gantrymq.client.pull_consumer",
    "PushConsumer": "gantrymq.client.push_consumer",
    "SendResult": "gantrymq.client.results",
    "SendStatus": "gantrymq.client.results",
    "SyncProducer": "gantrymq.client.blocking",
    "SyncPullConsumer": "gantrymq.client.blocking",
    "SyncPushConsumer": "gantrymq.client.blocking",
    "SyncTransactionProducer": "gantrymq.client.transaction_blocking",
    "TransactionListener": "gantrymq.client.transaction",
    "TransactionProducer": "gantrymq.client.transaction",
    "TransactionResult": "gantrymq.client.transaction",
    "TransactionState": "gantrymq.client.transaction",
    "TlsConfig": "gantrymq.remoting.tls",
    "reply_to": "gantrymq.client.request_reply",
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
