"""GantryMQ in a Django project (gantrymq[django]): `"gantrymq.contrib.django"` in INSTALLED_APPS.

settings    the setting GANTRYMQ; checks: what Django's system checks say of it
sending     a producer for the process, and sending when a transaction has committed
consuming   functions that consume, and what runs them for `manage.py consume`
outbox/     messages that are written in the same transaction as the data; `manage.py relay_outbox` sends them
admin       the outbox in Django's admin

The names below are the public ones. They are loaded when first used: the outbox has a model, which needs Django's apps.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gantrymq.contrib.django.consuming import consumer
    from gantrymq.contrib.django.outbox.writing import OutboxFull, put_in_outbox
    from gantrymq.contrib.django.sending import get_producer, send_on_commit

__all__ = ["OutboxFull", "consumer", "get_producer", "put_in_outbox", "send_on_commit"]

_HOMES = {
    "OutboxFull": "outbox.writing",
    "consumer": "consuming",
    "get_producer": "sending",
    "put_in_outbox": "outbox.writing",
    "send_on_commit": "sending",
}


if not TYPE_CHECKING:  # for type checkers it would have every name

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{home}"), name)
