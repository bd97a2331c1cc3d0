"""A broker with real tables and a real store, without sockets: what a handler needs and no more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from appliance.broker.controller import BrokerController
from appliance.broker.processors.table import TABLE
from appliance.broker.transaction.ended import EndedHalves
from appliance.errors import BrokerError
from appliance.remoting.route_table import routes_of
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import BodyError, MessageRejected
from gantrymq.message.ids import encode_host
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.config import MessageStoreConfig
from tests.appliance.broker.recording import RecordingConnection
from tests.harness import SMALL_STORE

LOCAL_HOST = encode_host("127.0.0.1", 10911)


@contextlib.contextmanager
def unopened_broker(
    folder: Path, *, store: dict[str, Any] | None = None, **settings: Any
) -> Iterator[BrokerController]:
    """A broker whose handlers can be called: loaded, its store started, not listening."""
    store_config = MessageStoreConfig(root=folder / "store", **{**SMALL_STORE, **(store or {})})
    broker = BrokerController(BrokerConfig(**settings), store_config)
    broker.topics.load()
    broker.groups.load()
    broker.offsets.load()
    broker.store.load()
    broker.store.start()
    broker.open_at(10911, EndedHalves())
    try:
        yield broker
    finally:
        broker.store.close()


def ask(
    broker: BrokerController,
    code: int,
    fields: dict[str, Any] | None = None,
    body: bytes = b"",
    *,
    connection: RecordingConnection | None = None,
    version: int = 401,
    language: str = "JAVA",
) -> RemotingCommand:
    """Call the handler of a code as the lanes do; an expected failure becomes the answer."""
    request = RemotingCommand.request(code, {key: str(value) for key, value in (fields or {}).items()}, body)
    request.version, request.language = version, language
    try:
        handler = routes_of(TABLE, broker)[code].handler
        answer = handler(connection or RecordingConnection(), request)  # type: ignore[arg-type]
    except BrokerError as exc:
        return request.reply(exc.code, str(exc))
    except (BodyError, MessageRejected) as exc:
        return request.reply(ResponseCode.INVALID_PARAMETER, str(exc))
    assert isinstance(answer, RemotingCommand)
    assert answer.opaque == request.opaque
    return answer
