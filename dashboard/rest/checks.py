"""A check as REST gives it, whatever it is about: security, connecting, a group that is behind."""

from __future__ import annotations

from typing import Literal, cast

from ninja import Schema

from dashboard.status.check import Check

LevelWord = Literal["good", "attention", "problem"]


class CheckOut(Schema):
    """What a check found. name: stays the same over versions; page: its page; lines: settings or a command."""

    name: str
    level: LevelWord
    title: str
    evidence: str
    action: str
    page: str
    lines: str

    @classmethod
    def of(cls, one: Check) -> CheckOut:
        level = cast(LevelWord, one.level.word)
        return cls(
            name=one.name, level=level, title=one.title, evidence=one.evidence, action=one.action, page=one.link,
            lines=one.lines,
        )  # fmt: skip
