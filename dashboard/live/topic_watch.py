"""Watches what topics take in the logs, and who sends to them: a page of topics a broker, every few seconds."""

from __future__ import annotations

import asyncio
import logging

from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.topics.topic_cache import TopicBook, topic_book

logger = logging.getLogger(__name__)

PERIOD_S = 2.0


class TopicWatch:
    """`run` looks; pages find it in the same book."""

    def __init__(self, gateway: Gateway, book: TopicBook = topic_book) -> None:
        self._gateway = gateway
        self._book = book

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self._book.look(self._gateway)
            except GatewayError as exc:  # the brokers' own problems say it on the page
                logger.debug("topics' figures not read", extra={"event": "topic_figures_not_read", "error": str(exc)})
            except Exception:  # a bug here must not stop the watching for good
                logger.exception("watching topics failed", extra={"event": "sampling_failed"})
            await asyncio.sleep(PERIOD_S)
