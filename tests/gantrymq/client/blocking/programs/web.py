"""A WSGI application with a producer that it opens when it is loaded, as under `gunicorn --preload`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from gantrymq import Message, SyncProducer

producer = SyncProducer(os.environ["NAME_SERVERS"])
producer.start()
producer.send(Message("web", b"loaded"))
LOADED_IN = os.getpid()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    result = producer.send(Message("web", b"request"))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid() != LOADED_IN} {os.getpid()} {result.status.name}".encode()]
