"""What goes wrong with conditions: SqlError when a text is none, EvaluationError when one can't be decided."""

from __future__ import annotations

from gantrymq.errors import GantryError


class SqlError(GantryError):
    """The text is no condition. `position`: the character where that shows, from 1."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"Invalid MessageSelector: {reason}, at character {position}")
        self.reason = reason
        self.position = position


class EvaluationError(GantryError):
    """A property's text can't be compared as the condition asks: the message does not match (as in RocketMQ)."""
