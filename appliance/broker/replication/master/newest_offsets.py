"""Offsets that a member took from its file, brought up to date before it serves them as the master.

With automatic failover a member that was killed may be the master when it is back, in its old epoch or in the next one.
The others of the in-sync set have had all commits until a second before it was lost; its own file is written less often
when a write takes long. So it asks them, and until one has answered it takes no commits, and tells offsets neither to
consumers nor to slaves. Of two offsets the larger one counts: which is newer is not known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container

from appliance.broker.access.access_control import outgoing_client
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.replication.master.slaves import SlaveService
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import GantryError, ResponseError
from gantrymq.remoting.admin_bodies import ConsumerOffsetTable
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

TIMEOUT_S = 1.0
AGAIN_S = 0.2


class NewestOffsets:
    """One opened master's. topics: what is told of others is of topics that were deleted. end_of: topic and queue id
    to the next offset, as the log has it."""

    def __init__(
        self,
        config: BrokerConfig,
        offsets: ConsumerOffsetManager,
        slaves: SlaveService,
        topics: Container[str],
        end_of: Callable[[str, int], int],
    ) -> None:
        self._config = config
        self._offsets = offsets
        self._slaves = slaves
        self._topics = topics
        self._end_of = end_of

    async def run(self) -> None:
        """Ask until one of the others has answered, or none is required any more."""
        if not self._offsets.may_be_old:
            return
        client = outgoing_client(self._config, TIMEOUT_S)
        try:
            while True:
                others = self._slaves.required
                if not others or await self._ask(client, others):
                    break
                await asyncio.sleep(AGAIN_S)
        finally:
            await client.close()
        self._offsets.are_new()
        logger.info("offsets are up to date", extra={"event": "offsets_up_to_date", "asked": others})

    async def _ask(self, client: RemotingClient, others: list[str]) -> bool:
        """Take over what those know that answer; say whether any does."""
        told = await asyncio.gather(*(self._table_of(client, address) for address in others))
        for theirs in told:
            if theirs is not None:
                self._offsets.put_further(theirs, self._topics, self._end_of)
        return any(theirs is not None for theirs in told)

    async def _table_of(self, client: RemotingClient, address: str) -> ConsumerOffsetTable | None:
        request = RemotingCommand.request(RequestCode.GET_ALL_CONSUMER_OFFSET)
        try:
            answer = await client.invoke(address, request, timeout_s=TIMEOUT_S)
            if answer.code != ResponseCode.SUCCESS:
                raise ResponseError(answer.code, answer.remark, address=address)
            return await asyncio.to_thread(ConsumerOffsetTable.from_json, answer.body)
        except GantryError as exc:
            logger.info("offsets not received: %s", exc, extra={"event": "offsets_not_told", "member": address})
            return None
