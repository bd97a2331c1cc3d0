"""GantryMQ's client SDK for RocketMQ 4.9 brokers.

    from gantrymq import Message, SyncProducer

    with SyncProducer("127.0.0.1:9876") as producer:
        print(producer.send(Message("demo", b"hello")))

The names below are the public ones, and so are those of gantrymq.errors: everything else may change. They are loaded
when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # for type checkers it is true; `typing` takes as long to import as all else here
if TYPE_CHECKING:
    from typing import Any

    from gantrymq import errors
    from gantrymq.app.application import App
    from gantrymq.client.admin.client import AdminClient
    from gantrymq.client.blocking.admin import SyncAdminClient
    from gantrymq.client.blocking.consumers import SyncPopConsumer, SyncPullConsumer, SyncPushConsumer
    from gantrymq.client.blocking.producer import SyncProducer
    from gantrymq.client.blocking.transaction import SyncTransactionProducer
    from gantrymq.client.consume.options import FlowLimits
    from gantrymq.client.consume.pull_consumer import PullConsumer
    from gantrymq.client.consume.push_consumer import PushConsumer
    from gantrymq.client.consume.rebalance import (
        allocate_averagely,
        allocate_by_circle,
        allocate_by_config,
        allocate_by_consistent_hash,
        allocate_by_machine_room,
        allocate_machine_room_nearby,
    )
    from gantrymq.client.consume.subscription import ConsumeFrom, MessageModel
    from gantrymq.client.interceptors import ConsumeCall, Interceptor, SendCall
    from gantrymq.client.pop.pop_consumer import PopConsumer
    from gantrymq.client.produce.producer import Producer
    from gantrymq.client.produce.request_reply import reply_to
    from gantrymq.client.produce.transaction import (
        TransactionChecker,
        TransactionListener,
        TransactionProducer,
        TransactionResult,
        TransactionState,
    )
    from gantrymq.client.results import ConsumeResult, DeadLetter, LostMessage, RetryLater, SendResult, SendStatus
    from gantrymq.message.model import Message, MessageExt, MessageQueue
    from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
    from gantrymq.remoting.signature import Credentials
    from gantrymq.remoting.tls import TlsConfig

__version__ = "0.2.0"

__all__ = [
    "AdminClient",
    "App",
    "ConsumeCall",
    "ConsumeFrom",
    "ConsumeResult",
    "Credentials",
    "DeadLetter",
    "FlowLimits",
    "Interceptor",
    "LostMessage",
    "Message",
    "MessageExt",
    "MessageModel",
    "MessageQueue",
    "PopConsumer",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "RetryLater",
    "SendCall",
    "SendResult",
    "SendStatus",
    "SubscriptionGroupConfig",
    "SyncAdminClient",
    "SyncPopConsumer",
    "SyncProducer",
    "SyncPullConsumer",
    "SyncPushConsumer",
    "SyncTransactionProducer",
    "TlsConfig",
    "TopicConfig",
    "TransactionChecker",
    "TransactionListener",
    "TransactionProducer",
    "TransactionResult",
    "TransactionState",
    "allocate_averagely",
    "allocate_by_circle",
    "allocate_by_config",
    "allocate_by_consistent_hash",
    "allocate_by_machine_room",
    "allocate_machine_room_nearby",
    "errors",
    "reply_to",
]

_HOMES = {
    "AdminClient": "gantrymq.client.admin.client",
    "App": "gantrymq.app.application",
    "ConsumeCall": "gantrymq.client.interceptors",
    "ConsumeFrom": "gantrymq.client.consume.subscription",
    "ConsumeResult": "gantrymq.client.results",
    "Credentials": "gantrymq.remoting.signature",
    "DeadLetter": "gantrymq.client.results",
    "FlowLimits": "gantrymq.client.consume.options",
    "Interceptor": "gantrymq.client.interceptors",
    "LostMessage": "gantrymq.client.results",
    "Message": "gantrymq.message.model",
    "MessageExt": "gantrymq.message.model",
    "MessageModel": "gantrymq.client.consume.subscription",
    "MessageQueue": "gantrymq.message.model",
    "PopConsumer": "gantrymq.client.pop.pop_consumer",
    "Producer": "gantrymq.client.produce.producer",
    "PullConsumer": "gantrymq.client.consume.pull_consumer",
    "PushConsumer": "gantrymq.client.consume.push_consumer",
    "RetryLater": "gantrymq.client.results",
    "SendCall": "gantrymq.client.interceptors",
    "SendResult": "gantrymq.client.results",
    "SendStatus": "gantrymq.client.results",
    "SubscriptionGroupConfig": "gantrymq.remoting.admin_bodies",
    "SyncAdminClient": "gantrymq.client.blocking.admin",
    "SyncPopConsumer": "gantrymq.client.blocking.consumers",
    "SyncProducer": "gantrymq.client.blocking.producer",
    "SyncPullConsumer": "gantrymq.client.blocking.consumers",
    "SyncPushConsumer": "gantrymq.client.blocking.consumers",
    "SyncTransactionProducer": "gantrymq.client.blocking.transaction",
    "TopicConfig": "gantrymq.remoting.admin_bodies",
    "TransactionChecker": "gantrymq.client.produce.transaction",
    "TransactionListener": "gantrymq.client.produce.transaction",
    "TransactionProducer": "gantrymq.client.produce.transaction",
    "TransactionResult": "gantrymq.client.produce.transaction",
    "TransactionState": "gantrymq.client.produce.transaction",
    "TlsConfig": "gantrymq.remoting.tls",
    "allocate_averagely": "gantrymq.client.consume.rebalance",
    "allocate_by_circle": "gantrymq.client.consume.rebalance",
    "allocate_by_config": "gantrymq.client.consume.rebalance",
    "allocate_by_consistent_hash": "gantrymq.client.consume.rebalance",
    "allocate_by_machine_room": "gantrymq.client.consume.rebalance",
    "allocate_machine_room_nearby": "gantrymq.client.consume.rebalance",
    "reply_to": "gantrymq.client.produce.request_reply",
}


if not TYPE_CHECKING:  # for them it would have every name: they find one that is none by the imports above

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
