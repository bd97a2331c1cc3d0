"""The clients that this proxy knows now: what they said of themselves, and the stream on which they can be told things.

A client may come to a proxy that has not seen it yet, in the middle of its work, because the one before ended. So each
call that says what the client is counts as its settings, until it sends them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from grpclib.exceptions import StreamTerminatedError
from grpclib.server import Stream

from appliance.proxy.callers import Caller, whole_name
from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code, Settings
from appliance.proxy.protocol.service_pb2 import TelemetryCommand
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

SILENT_S_MAX = 120.0  # without a call and without a stream; clients send a heartbeat each 10 s
CLIENTS_MAX = 20_000
SCAN_S = 10.0
TELL_S_MAX = 3.0  # for a command to get into the connection


class TelemetryStream:
    """One open stream to a client. Commands go one after the other."""

    def __init__(self, stream: Stream[TelemetryCommand, TelemetryCommand]) -> None:
        self._stream = stream
        self._telling = asyncio.Lock()

    async def tell(self, command: TelemetryCommand) -> bool:
        """Send it; False when the client could not be reached."""
        try:
            async with timeout(TELL_S_MAX), self._telling:
                await self._stream.send_message(command)
        except (TimeoutError, StreamTerminatedError, ConnectionError, OSError) as exc:
            logger.debug("command not sent: %s", exc, extra={"event": "command_not_sent"})
            return False
        return True


@dataclass(slots=True)
class Client:
    """One client. settings: as it sent them. streams: the newest last."""

    client_id: str
    settings: Settings
    access_key: str = ""
    address: str = ""
    language: str = ""
    version: str = ""
    seen_at: float = 0.0
    answer: Settings | None = None  # to its settings
    streams: list[TelemetryStream] = field(default_factory=list)

    @property
    def group(self) -> str:
        """The whole name of its consumer group, "" for a producer."""
        return whole_name(self.settings.subscription.group) if self.settings.subscription.HasField("group") else ""

    def publishes(self, topic: str) -> bool:
        return any(whole_name(resource) == topic for resource in self.settings.publishing.topics)


class ClientBook:
    """All clients of this proxy, by id."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self.changed: Callable[[str], object] = lambda access_key: None  # an account's clients are others now

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._clients.values()))

    def get(self, client_id: str) -> Client | None:
        return self._clients.get(client_id)

    def learn(self, caller: Caller, settings: Settings) -> Client:
        """A client that said what it is. Refused when there are too many, or when another account uses its id."""
        access_key = caller.account.access_key if caller.account is not None else ""
        client = self._clients.get(caller.client_id)
        if client is None:
            if len(self._clients) >= CLIENTS_MAX:
                raise Refused(Code.TOO_MANY_REQUESTS, f"{CLIENTS_MAX} clients are connected to this proxy")
            client = self._clients[caller.client_id] = Client(caller.client_id, settings, access_key)
        elif client.access_key != access_key:
            raise Refused(Code.UNAUTHORIZED, f"client id {caller.client_id} is another account's")
        is_changed = client.settings != settings or not client.seen_at
        client.settings = settings
        client.address, client.language, client.version = caller.address, caller.language, caller.version
        client.seen_at = time.monotonic()
        if is_changed:
            self.changed(access_key)
        return client

    def seen(self, caller: Caller) -> Client | None:
        """The client of a call, if it is known, and its account the same."""
        client = self._clients.get(caller.client_id)
        if client is None or client.access_key != (caller.account.access_key if caller.account is not None else ""):
            return None
        client.seen_at = time.monotonic()
        return client

    def forget(self, client_id: str) -> None:
        client = self._clients.pop(client_id, None)
        if client is not None:
            self.changed(client.access_key)

    def of_account(self, access_key: str) -> list[Client]:
        return [client for client in self._clients.values() if client.access_key == access_key]

    def published(self, access_key: str) -> set[str]:
        """The topics that an account's producers publish."""
        clients = self.of_account(access_key)
        return {whole_name(topic) for client in clients for topic in client.settings.publishing.topics}

    def publishers(self, topic: str, access_key: str) -> list[Client]:
        """An account's producers of a topic that can be told something."""
        return [
            client
            for client in self._clients.values()
            if client.streams and client.access_key == access_key and client.publishes(topic)
        ]

    async def run(self) -> None:
        """Forget clients that are gone without a word, until cancelled."""
        while True:
            await asyncio.sleep(SCAN_S)
            now = time.monotonic()
            gone = [
                client.client_id
                for client in self._clients.values()
                if not client.streams and now - client.seen_at > SILENT_S_MAX
            ]
            for client_id in gone:
                self.forget(client_id)
