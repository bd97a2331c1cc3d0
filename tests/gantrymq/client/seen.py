"""What tests of consumers share: a listener that keeps what it got, and waiting for what must come."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from gantrymq import MessageExt
from tests.waiting import WITHIN_S

numbers = itertools.count()


async def until(condition: Callable[[], bool], *, within_s: float = WITHIN_S) -> None:
    """Wait until the condition holds; TimeoutError when it does not."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)


class Seen:
    """A listener that keeps what it got."""

    def __init__(self) -> None:
        self.messages: list[MessageExt] = []

    async def __call__(self, messages: list[MessageExt]) -> None:
        self.messages += messages

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]
