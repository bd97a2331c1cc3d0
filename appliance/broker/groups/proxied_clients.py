"""The clients of RocketMQ 5 that use this broker through a proxy, as the proxies' heartbeats report them.

They are shown, and asked what tools want to know: queues are shared out among consumers with connections of their own
only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from appliance.broker.groups.clients import SILENCE_S_MAX
from appliance.remoting.connection import ServerConnection
from gantrymq.remoting.admin_bodies import Connection
from gantrymq.remoting.bodies import ProxiedClient, ProxyReport, SubscriptionData
from gantrymq.remoting.codes import LanguageCode

CLIENTS_MAX = 20_000  # of all reports
CONSUME_POP = "CONSUME_POP"  # how they consume, as RocketMQ 5 says it
_VERSION = re.compile(r"([45])\.(\d)\.(\d)$")
_V4_0_0 = 213  # RocketMQ's number of that version; two further for each release


class ProxiedClients:
    """One broker's, by the proxy's connection: a report replaces the one before. clock: monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: dict[ServerConnection, tuple[float, ProxyReport]] = {}

    def note(self, connection: ServerConnection, report: ProxyReport) -> None:
        """What a proxy said just now; what is beyond CLIENTS_MAX is left out."""
        known = sum(len(each.clients) for other, (_at, each) in self._reports.items() if other is not connection)
        del report.clients[max(CLIENTS_MAX - known, 0) :]
        self._reports[connection] = self._clock(), report

    def connection_closed(self, connection: ServerConnection) -> None:
        self._reports.pop(connection, None)

    def of_connection(self, connection: ServerConnection) -> ProxyReport | None:
        """The newest report of a proxy; None for any other client, and for a proxy that has fallen silent."""
        at, report = self._reports.get(connection, (0.0, None))
        return report if report is not None and self._clock() - at <= SILENCE_S_MAX else None

    def members(self, group: str) -> list[ProxiedClient]:
        """The group's consumers, each once."""
        found = {each.client_id: each for each in self._all() if group and each.group == group}
        return list(found.values())

    def proxy_of(self, group: str, client_id: str) -> ServerConnection | None:
        """The connection of the proxy that serves this consumer now."""
        for connection in self._reports:
            report = self.of_connection(connection)
            if report and any(one.client_id == client_id and one.group == group for one in report.clients):
                return connection
        return None

    def producers(self, topic: str) -> list[ProxiedClient]:
        """Who publishes a topic, each once; the topic is their producer group."""
        found = {each.client_id: each for each in self._all() if topic in each.topics}
        return list(found.values())

    def _all(self) -> Iterator[ProxiedClient]:
        for connection in self._reports:
            report = self.of_connection(connection)
            yield from report.clients if report is not None else ()


def as_connection(client: ProxiedClient) -> Connection:
    """A client as 203 has members."""
    language = client.language if client.language in LanguageCode.__members__ else LanguageCode.OTHER.name
    return Connection(client.client_id, client.address, language, _ordinal(client.version))


def subscriptions_of(client: ProxiedClient) -> Iterator[SubscriptionData]:
    """What it wants, as heartbeats say it."""
    for topic, wanted in client.wanted.items():
        kind, _, expression = wanted.partition(" ")
        yield SubscriptionData(topic, expression, expression_type=kind)


def _ordinal(version: str) -> int:
    """RocketMQ's number of a version of its own; 0 of one that it has no number for."""
    found = _VERSION.match(version)
    if found is None:
        return 0
    major, minor, patch = map(int, found.groups())
    return _V4_0_0 + 2 * ((major - 4) * 100 + minor * 10 + patch)
