"""What REST gives about connecting."""

from __future__ import annotations

from ninja import Schema

from dashboard.rest.checks import CheckOut


class TickOut(Schema):
    """One of the four steps to messages that are handled."""

    title: str
    is_done: bool
    told: str


class MeaningOut(Schema):
    """What an error may mean, and what to do."""

    meaning: str
    advice: str


class ConnectOut(Schema):
    """name_servers: what a client is given. meanings: of the error that was asked about."""

    name_servers: str
    ticks: list[TickOut]
    checks: list[CheckOut]
    meanings: list[MeaningOut]
