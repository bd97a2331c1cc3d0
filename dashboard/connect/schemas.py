"""What REST gives about connecting."""

from __future__ import annotations

from typing import Literal

from ninja import Schema

Level = Literal["ok", "attention", "problem"]


class TickOut(Schema):
    """One of the four steps to messages that are handled."""

    title: str
    is_done: bool
    told: str


class DoctorFindingOut(Schema):
    """One thing that was looked at, from the dashboard's machine."""

    what: str
    level: Level
    told: str
    advice: str


class MeaningOut(Schema):
    """What an error may mean, and what to do."""

    meaning: str
    advice: str


class ConnectOut(Schema):
    """name_servers: what a client is given. meanings: of the error that was asked about."""

    name_servers: str
    ticks: list[TickOut]
    findings: list[DoctorFindingOut]
    meanings: list[MeaningOut]
