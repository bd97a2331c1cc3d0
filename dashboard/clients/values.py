"""What pages and REST show of clients. None is not known: Apache's brokers tell neither TLS nor accounts nor rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dashboard.cluster.values import PartialFailure
from gantrymq.client.consume.failed_messages import INNER_PRODUCER_GROUP

V4_9_4, V4_0_0 = 401, 213  # of RocketMQ's table of versions: a snapshot and a release for each number
V3_0_0 = 0


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection to one broker. opened_at, last_seen_at: epoch seconds; requests: since then; rate: a second.

    proxy: where the proxy listens to which a client of RocketMQ 5 is connected.
    """

    broker: str
    address: str
    opened_at: float | None = None
    last_seen_at: float | None = None
    has_tls: bool | None = None
    account: str | None = None
    requests: int | None = None
    rate: float | None = None
    groups: tuple[str, ...] = ()  # those that it is a member of
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """One client: what shares a client id. A tool that says no id is one of its own, by its address.

    release: its version, where the client writes it as text; serves: where it listens, if it is a proxy.
    """

    client_id: str
    language: str
    version: int
    producer_groups: tuple[str, ...]
    consumer_groups: tuple[str, ...]
    connections: tuple[Connection, ...]
    release: str = ""
    serves: str = ""

    @property
    def name(self) -> str:
        return self.client_id or self.connections[0].address

    @property
    def sends_as(self) -> tuple[str, ...]:
        """Its producer groups, but for the one that each consumer has inside for messages that it sends back."""
        return tuple(group for group in self.producer_groups if group != INNER_PRODUCER_GROUP)

    @property
    def host(self) -> str:
        hosts = dict.fromkeys(one.address if one.proxy else one.address.rpartition(":")[0] for one in self.connections)
        return ", ".join(hosts)

    @property
    def since(self) -> float | None:
        """Since when it is connected: the oldest connection's begin."""
        return min((one.opened_at for one in self.connections if one.opened_at is not None), default=None)

    @property
    def rate(self) -> float | None:
        """Requests a second at all brokers; None as long as one of them is not known."""
        rates = [one.rate for one in self.connections]
        return None if None in rates else sum(rate for rate in rates if rate is not None)

    @property
    def requests(self) -> int | None:
        counts = [one.requests for one in self.connections]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def has_tls(self) -> bool | None:
        """Whether all its connections are encrypted."""
        known = {one.has_tls for one in self.connections}
        return None if None in known else known == {True}

    @property
    def accounts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.account for one in self.connections if one.account))

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.broker for one in self.connections))

    @property
    def proxies(self) -> tuple[str, ...]:
        """Where the proxies listen to which it is connected; a client of RocketMQ 4 has none."""
        return tuple(dict.fromkeys(one.proxy for one in self.connections if one.proxy))

    @property
    def is_twice(self) -> bool:
        """Whether two processes use this id: two connections to one broker are members of the same group."""
        seen: set[tuple[str, str]] = set()
        for one in self.connections if self.client_id else ():
            for group in one.groups if not one.proxy else ():
                if (one.broker, group) in seen:
                    return True
                seen.add((one.broker, group))
        return False

    @property
    def version_text(self) -> str:
        return self.release or version_text(self.version)


@dataclass(frozen=True, slots=True)
class ClientListing:
    """Who was connected at `at`. silent: brokers that tell less, since they have no request for it."""

    clients: tuple[ConnectedClient, ...]
    at: float
    failures: tuple[PartialFailure, ...] = ()
    telling_less: tuple[str, ...] = ()

    @property
    def named(self) -> list[ConnectedClient]:
        return [client for client in self.clients if client.client_id]

    def by_language(self) -> dict[str, int]:
        """How many clients of each language, the most first."""
        counts: dict[str, int] = {}
        for client in self.named:
            counts[client.language or "?"] = counts.get(client.language or "?", 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(slots=True)
class Draft:
    """A client while its connections are put together."""

    client_id: str
    language: str = ""
    version: int = 0
    producer_groups: dict[str, None] = field(default_factory=dict)
    consumer_groups: dict[str, None] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)
    release: str = ""
    serves: str = ""

    def done(self) -> ConnectedClient:
        return ConnectedClient(
            self.client_id, self.language, self.version, tuple(sorted(self.producer_groups)),
            tuple(sorted(self.consumer_groups)), tuple(self.connections), self.release, self.serves,
        )  # fmt: skip


def in_order(drafts: Iterable[Draft]) -> tuple[ConnectedClient, ...]:
    """Clients by id; tools without one come last."""
    return tuple(sorted((draft.done() for draft in drafts), key=lambda one: (not one.client_id, one.name)))


def version_text(ordinal: int) -> str:
    """RocketMQ's number of a version as people write it: 401 is 4.9.4."""
    if ordinal <= V3_0_0:
        return ""
    if ordinal < V4_0_0 - 1:
        return "before 4.0"
    steps = (ordinal - (V4_0_0 - 1)) // 2  # a release of each number, and a snapshot before it
    text = f"{4 + steps // 100}.{steps // 10 % 10}.{steps % 10}"
    return text if ordinal % 2 else f"{text}-SNAPSHOT"
