"""What REST takes and gives about clients. A null is not known: Apache's brokers tell less."""

from __future__ import annotations

from datetime import UTC, datetime

from ninja import Field, Schema

from dashboard.clients.values import ConnectedClient, Connection
from dashboard.rest.values import Given


class ConnectionOut(Schema):
    """One connection to one broker. requests: since it was opened; request_rate: a second."""

    broker: str
    address: str
    opened_at: datetime | None
    last_seen_at: datetime | None
    has_tls: bool | None
    account: str | None
    requests: int | None
    request_rate: float | None

    @classmethod
    def of(cls, one: Connection) -> ConnectionOut:
        return cls(
            broker=one.broker, address=one.address, opened_at=_moment(one.opened_at),
            last_seen_at=_moment(one.last_seen_at), has_tls=one.has_tls, account=one.account, requests=one.requests,
            request_rate=one.rate,
        )  # fmt: skip


class ClientOut(Schema):
    """A client. client_id is empty for what says none, such as a tool. is_twice: two processes use the id."""

    client_id: str
    language: str
    version: str
    producer_groups: list[str]
    consumer_groups: list[str]
    is_twice: bool
    connections: list[ConnectionOut]

    @classmethod
    def of(cls, one: ConnectedClient) -> ClientOut:
        return cls(
            client_id=one.client_id, language=one.language, version=one.version_text,
            producer_groups=list(one.producer_groups), consumer_groups=list(one.consumer_groups),
            is_twice=one.is_twice, connections=[ConnectionOut.of(each) for each in one.connections],
        )  # fmt: skip


class ClientList(Schema):
    """The clients that match. telling_less: brokers of Apache, which tell neither TLS, accounts nor rates."""

    clients: list[ClientOut]
    total: int
    telling_less: list[str]
    troubles: list[str]


class DisconnectIn(Given):
    """Whose connections are to be closed."""

    client_id: str = Field(min_length=1, max_length=1024)


class Disconnected(Schema):
    """How many connections each broker closed. The client may connect again."""

    client_id: str
    closed: dict[str, int]


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
