"""Why dead letters failed: told apart by what the SDK wrote into a property. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gantrymq.message.model import MessageExt
from gantrymq.message.properties import CONSUME_ERROR, CONSUME_ERROR_TEXT


@dataclass(frozen=True, slots=True)
class Cause:
    """Letters that failed for one reason. error: "shop.OutOfStock at orders.py:42", empty when no client told one.

    text: the last line of the newest one's traceback.
    """

    error: str
    text: str
    count: int
    first_ms: int
    last_ms: int
    newest: MessageExt

    @property
    def condition(self) -> str:
        """What finds these letters when it is typed to find messages."""
        return f'{CONSUME_ERROR}="{self.error}"'

    @property
    def place(self) -> str:
        return f"{self.newest.broker_name}.{self.newest.queue_id}.{self.newest.queue_offset}"


def cause_of(message: MessageExt) -> str:
    """The error of one letter, empty when no client told one."""
    return message.properties.get(CONSUME_ERROR, "")


def grouped(letters: Iterable[MessageExt]) -> list[Cause]:
    """The letters by cause, the most frequent first."""
    found: dict[str, list[MessageExt]] = {}
    for letter in letters:
        found.setdefault(cause_of(letter), []).append(letter)
    causes = [_cause(error, same) for error, same in found.items()]
    return sorted(causes, key=lambda cause: (-cause.count, -cause.last_ms, cause.error))


def _cause(error: str, same: list[MessageExt]) -> Cause:
    newest = max(same, key=lambda letter: letter.store_timestamp)
    first_ms = min(letter.store_timestamp for letter in same)
    text = newest.properties.get(CONSUME_ERROR_TEXT, "")
    return Cause(error, text, len(same), first_ms, newest.store_timestamp, newest)
