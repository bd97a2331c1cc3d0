"""Sending from a Django project: one producer a process, and messages that leave when the transaction has committed."""

from __future__ import annotations

import threading
from typing import Any

from django.core.signals import setting_changed
from django.db import transaction

from gantrymq.client.blocking.producer import SyncProducer
from gantrymq.contrib.django import settings
from gantrymq.message.model import Message

_lock = threading.Lock()
_producer: SyncProducer | None = None


def get_producer() -> SyncProducer:
    """The process's producer, made of the setting GANTRYMQ and started by the first call; threads share it.

    It lives through forks (gunicorn --preload, Celery) and is closed when the interpreter ends. ImproperlyConfigured
    when the setting is wrong.
    """
    global _producer
    with _lock:
        if _producer is None:
            own = settings.current()
            producer = SyncProducer(own.name_servers, **own.producer)
            producer.start()
            _producer = producer
        return _producer


def send_on_commit(
    message: Message, *, sharding_key: str | None = None, using: str | None = None, robust: bool = False
) -> None:
    """Send the message when the current transaction has committed; at once when there is none, never after a rollback.

    using: the database whose transaction it is. The sends of a transaction happen in their order, and each waits for
    the broker. One that fails raises an error of gantrymq.errors from the end of the transaction, which is committed
    by then: the message is lost. With `robust` the error goes to Django's log instead. A message that must not be lost
    goes into the outbox (put_in_outbox).
    """
    transaction.on_commit(lambda: _send(message, sharding_key), using=using, robust=robust)


def _send(message: Message, sharding_key: str | None) -> None:
    get_producer().send(message, sharding_key=sharding_key)


def _forget(*, setting: str, **_: Any) -> None:
    """Tests change settings: the next call makes a producer anew."""
    global _producer
    if setting != settings.NAME:
        return
    with _lock:
        producer, _producer = _producer, None
    if producer is not None:
        producer.close()


setting_changed.connect(_forget)
