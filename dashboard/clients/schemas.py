"""What REST takes and gives about clients. A null is not known: Apache's brokers tell less."""

from __future__ import annotations

from ninja import Field, Schema

from dashboard.rest.values import Given, MaybeFromSeconds, Out, named


class ConnectionOut(Out):
    """One connection to one broker. requests: since it was opened; request_rate: a second."""

    broker: str
    address: str
    opened_at: MaybeFromSeconds
    last_seen_at: MaybeFromSeconds
    has_tls: bool | None
    account: str | None
    requests: int | None
    request_rate: float | None = named("rate")


class ClientOut(Out):
    """A client. client_id is empty for what says none, such as a tool. is_twice: two processes use the id."""

    client_id: str
    language: str
    version: str = named("version_text")
    producer_groups: list[str]
    consumer_groups: list[str]
    is_twice: bool
    connections: list[ConnectionOut]


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
