"""Watches the consumer groups: how far behind, with how many members. A few groups a second, each every few seconds."""

from __future__ import annotations

import asyncio
import logging

from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.groups.group_cache import GroupBook, group_book
from dashboard.status.board import WatchedGroup

logger = logging.getLogger(__name__)

PERIOD_S = 1.0


class GroupWatch:
    """`run` looks, `seen` is what was seen last; pages find it in the same book."""

    def __init__(self, gateway: Gateway, book: GroupBook = group_book) -> None:
        self._gateway = gateway
        self._book = book

    @property
    def seen(self) -> tuple[WatchedGroup, ...]:
        return self._book.seen

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await self._book.look_round(self._gateway)
            except GatewayError as exc:  # the brokers' own problems say it on the page
                logger.debug("groups not read", extra={"event": "groups_not_read", "error": str(exc)})
            except Exception:  # a bug here must not stop the watching for good
                logger.exception("watching groups failed", extra={"event": "sampling_failed"})
