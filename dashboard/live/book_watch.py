"""Watches what is looked at in turn: a few groups a second, a page of topics a broker. Pages find it in the books."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway

logger = logging.getLogger(__name__)

GROUPS_EACH_S, TOPICS_EACH_S = 1.0, 2.0


async def keep_looking(look: Callable[[Gateway], Awaitable[object]], gateway: Gateway, period_s: float) -> None:
    """Look until cancelled."""
    while True:
        try:
            await look(gateway)
        except GatewayError as exc:  # the brokers' own problems say it on the page
            logger.debug("book not read", extra={"event": "book_not_read", "error": str(exc)})
        except Exception:  # a bug here must not stop the watching for good
            logger.exception("watching failed", extra={"event": "sampling_failed"})
        await asyncio.sleep(period_s)
