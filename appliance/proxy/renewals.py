"""Leases that the proxy renews while their client works on the messages: those of push consumers, which ask for it.

A renewal moves the lease's end at its broker and leaves the handle as it is. A proxy that ends takes only the renewals
with it: then a message may come a second time. Nothing else depends on what is kept here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from appliance.proxy.brokers import BrokerSession
from appliance.proxy.leases import change
from gantrymq.errors import GantryError, LeaseEnded
from gantrymq.message.pop_handle import PopHandle

logger = logging.getLogger(__name__)

LEASE_S = 60.0
RENEW_BEFORE_S = 20.0  # the end of the lease
SCAN_S = 5.0
RENEWED_S_MAX = 3 * 3600.0  # from the delivery on
RENEWED_MAX = 100_000
AT_ONCE = 64  # requests on their way


@dataclass(slots=True)
class Renewed:
    """One lease. Times: monotonic seconds."""

    session: BrokerSession
    client_id: str
    group: str
    topic: str
    handle: PopHandle
    delivered_at: float
    due_at: float


class Renewals:
    """All of this proxy. is_there: whether a client is still connected."""

    def __init__(self, is_there: Callable[[str], bool]) -> None:
        self._is_there = is_there
        self._leases: dict[tuple[str, ...], Renewed] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def add(self, session: BrokerSession, client_id: str, group: str, topic: str, handle: PopHandle) -> None:
        """Renew it from now on; too many are not renewed, and come again after LEASE_S."""
        if len(self._leases) < RENEWED_MAX:
            now = time.monotonic()
            renewed = Renewed(session, client_id, group, topic, handle, now, now + LEASE_S)
            self._leases[_key(group, topic, handle)] = renewed

    def drop(self, group: str, topic: str, handle: PopHandle) -> None:
        """The message is done with, or its client has named a time itself."""
        self._leases.pop(_key(group, topic, handle), None)

    def drop_of(self, client_id: str) -> list[Renewed]:
        """Forget the leases of a client that has ended, and return them."""
        ended = [renewed for renewed in self._leases.values() if renewed.client_id == client_id]
        for renewed in ended:
            self.drop(renewed.group, renewed.topic, renewed.handle)
        return ended

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            await asyncio.sleep(SCAN_S)
            now = time.monotonic()
            due = [renewed for renewed in self._leases.values() if renewed.due_at - now < RENEW_BEFORE_S]
            for at in range(0, len(due), AT_ONCE):
                await asyncio.gather(*(self._renew(renewed) for renewed in due[at : at + AT_ONCE]))

    async def _renew(self, renewed: Renewed) -> None:
        now = time.monotonic()
        if not self._is_there(renewed.client_id) or now - renewed.delivered_at > RENEWED_S_MAX:
            self.drop(renewed.group, renewed.topic, renewed.handle)
            return
        try:
            handle = renewed.handle
            await change(renewed.session, renewed.group, renewed.topic, handle, int(LEASE_S * 1000))
            renewed.due_at = now + LEASE_S
        except LeaseEnded:
            self.drop(renewed.group, renewed.topic, renewed.handle)
        except GantryError as exc:  # tried again at the next scan, while the lease lasts
            logger.info("lease not renewed: %s", exc, extra={"event": "lease_not_renewed", "group": renewed.group})
            if now > renewed.due_at:
                self.drop(renewed.group, renewed.topic, renewed.handle)


def _key(group: str, topic: str, handle: PopHandle) -> tuple[str, ...]:
    return group, topic, *handle.place
