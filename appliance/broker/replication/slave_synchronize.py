"""What a slave asks its master for every ten seconds: topics, offsets, delay offsets and groups, as RocketMQ's does.

They are ordinary requests, so either side may be Apache's. Each of the four goes by itself: what fails is asked again
in the next round. Topics and groups replace the slave's when their version is another; offsets are put over the
slave's, which keeps what the master has forgotten. A master of GantryMQ tells its offsets with its states.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping

from appliance.broker.access.access_control import outgoing_client
from appliance.broker.replication.apache_fence import ApacheFence
from appliance.broker.replication.master_address import MasterAddress
from appliance.broker.replication.state_frames import StateParts
from appliance.process.json_file import StateFileError
from appliance.settings.roles import BrokerConfig
from appliance.settings.tls import DISABLED
from gantrymq.client.admin.calls import read_properties
from gantrymq.errors import GantryError, ResponseError
from gantrymq.remoting.admin_bodies import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    KVTable,
    SubscriptionGroupWrapper,
    TopicConfigSerializeWrapper,
)
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.tls import ClientTls
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

INTERVAL_S = 10.0  # fixed in RocketMQ
RETRY_S = 1.0  # while no round has been complete yet: a slave without topics serves no consumer; and while fenced
TIMEOUT_S = 3.0
SOON_S = 0.1


class SlaveSynchronize:
    """The rounds of one slave."""

    def __init__(
        self,
        config: BrokerConfig,
        master: MasterAddress,
        parts: StateParts,
        *,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._config = config
        self._master = master
        self._parts = parts
        self._interval_s = interval_s
        self._client = outgoing_client(config)
        self._tls = ClientTls(config.outgoing_tls) if config.outgoing_tls is not None else None
        self._ha_has_tls = False  # the master's port for slaves, as it said when it was last asked
        self._asked = asyncio.Event()
        self._failed: dict[str, str] = {}  # what could not be had in the last round, and why
        self._has_epochs: bool | None = None  # the master, as far as it has said: Apache's has none
        self.fence = ApacheFence()
        self.complete_at = 0.0  # monotonic: when the last round ended in which all was had

    async def figures(self) -> tuple[int, int]:
        """Where the master's log begins and ends, as it says now; -1 for what it does not say."""
        if not self._master.broker:
            return -1, -1
        try:
            table = KVTable.from_json(await self._ask(self._master.broker, RequestCode.GET_BROKER_RUNTIME_INFO)).table
            return int(table.get("commitLogMinOffset", "-1")), int(table.get("commitLogMaxOffset", "-1"))
        except (GantryError, ValueError):
            return -1, -1

    async def epoch(self) -> int | None:
        """The master's epoch, as it says now: 0 when it knows none, None when it can't be asked now."""
        if not self._master.broker:
            return None if self._config.namesrv_addresses else 0
        try:
            table = KVTable.from_json(await self._ask(self._master.broker, RequestCode.GET_BROKER_RUNTIME_INFO)).table
            self._ha_has_tls = table.get("haTlsMode", DISABLED) != DISABLED
            epoch = int(table.get("epoch", "0"))
            self._has_epochs = epoch > 0
            if not epoch:
                self.fence.note(await self._role(self._master.broker))
            return epoch
        except ResponseError:  # no account that may ask for it: the log is copied all the same
            return 0
        except (GantryError, ValueError):
            return None

    async def take_over(self, own_address: str, end: int, epoch: int) -> None:
        """Have the master hand over to this slave, whose log ends at `end`: it takes nothing more from then on, unless
        this slave says that it has not begun that epoch. GantryError when that is not known."""
        if not self._master.broker:
            raise GantryError("none is known")
        fields = {"slave": own_address, "handOverAt": str(end), "epoch": str(epoch)}
        await self._ask(self._master.broker, RequestCode.HOLD_MESSAGES, fields)

    def ha_tls(self) -> ssl.SSLContext | None:
        """TLS for the log, when the master has said that it can and this slave has any. Raises ConfigError."""
        return self._tls.context() if self._tls is not None and self._ha_has_tls else None

    def ask_soon(self) -> None:
        """Have the next round now: the master has told of other tables than these."""
        self._asked.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        try:
            while True:
                if self._master.broker:
                    await self._round(self._master.broker)
                with contextlib.suppress(TimeoutError):
                    is_soon = not self.complete_at or self.fence.is_up
                    async with timeout(RETRY_S if is_soon else self._interval_s):
                        await self._asked.wait()
                        await asyncio.sleep(SOON_S)  # changes come in groups
                self._asked.clear()
        finally:
            await self._client.close()

    async def _round(self, address: str) -> None:
        failed: dict[str, str] = {}
        if self._has_epochs is None:
            await self.epoch()
        steps: dict[str, Callable[[str], Awaitable[None]]] = {"topics": self._take_topics, "groups": self._take_groups}
        if not self._has_epochs:  # else states tell them, and an answer that is late would put old ones over newer
            steps |= {"consumer offsets": self._take_offsets, "delay offsets": self._take_delay_offsets}
        role = await self._role(address) if self._has_epochs is False else ""
        for what, step in steps.items():
            try:
                await step(address)
            except (GantryError, StateFileError, ValueError) as exc:
                failed[what] = str(exc)
        if failed.keys() - self._failed.keys():
            logger.warning(
                "slave could not copy everything from its master",
                extra={
                    "event": "slave_sync_failed",
                    "master": address,
                    **{what.replace(" ", "_"): why for what, why in failed.items()},
                },
            )
        if not failed:
            self.complete_at = time.monotonic()
            if role:
                self.fence.look(address, role, await self.figures(), time.monotonic())
        self._failed = failed

    # -- the steps ----------------------------------------------------------------------------------------------------

    async def _take_topics(self, address: str) -> None:
        body = await self._ask(address, RequestCode.GET_ALL_TOPIC_CONFIG)
        theirs = await asyncio.to_thread(TopicConfigSerializeWrapper.from_json, body)
        if theirs.data_version != self._parts.topics.data_version:
            await self._parts.topics.replace_all(theirs)

    async def _take_groups(self, address: str) -> None:
        body = await self._ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        theirs = await asyncio.to_thread(SubscriptionGroupWrapper.from_json, body)
        if theirs.data_version != self._parts.groups.data_version:
            await self._parts.groups.replace_all(theirs)

    async def _take_offsets(self, address: str) -> None:
        body = await self._ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        await self._parts.offsets.put_all(await asyncio.to_thread(ConsumerOffsetTable.from_json, body))

    async def _take_delay_offsets(self, address: str) -> None:
        try:
            body = await self._ask(address, RequestCode.GET_ALL_DELAY_OFFSET)
        except ResponseError as exc:
            if exc.code == ResponseCode.SYSTEM_ERROR:
                return  # a master without delayed messages has none
            raise
        self._parts.schedule.offsets = DelayOffsetTable.from_json(body).offset_table
        await asyncio.to_thread(self._parts.schedule.persist)

    async def _role(self, address: str) -> str:
        """Its `brokerRole` as it runs now, "" when it does not say."""
        try:
            return read_properties(await self._ask(address, RequestCode.GET_BROKER_CONFIG)).get("brokerRole", "")
        except GantryError:
            return ""

    async def _ask(self, address: str, code: RequestCode, fields: Mapping[str, str] | None = None) -> bytes:
        request = RemotingCommand.request(code, dict(fields or {}))
        answer = await self._client.invoke(address, request, timeout_s=TIMEOUT_S)
        if answer.code != ResponseCode.SUCCESS:
            raise ResponseError(answer.code, answer.remark, address=address)
        return answer.body
