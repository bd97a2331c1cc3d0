"""A check as REST gives it, whatever it is about: security, connecting, a group that is behind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

from dashboard.rest.values import Out, named

LevelWord = Literal["good", "attention", "problem"]
LevelOut = Annotated[LevelWord, BeforeValidator(lambda level: getattr(level, "word", level))]


class CheckOut(Out):
    """What a check found. name: stays the same over versions; page: its page; lines: settings or a command."""

    name: str
    level: LevelOut
    title: str
    evidence: str
    action: str
    page: str = named("link")
    lines: str
