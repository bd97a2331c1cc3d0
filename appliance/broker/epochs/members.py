"""Who else belongs to this broker's name, as the name servers and the brokers themselves say it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Sequence

from appliance.broker.access.access_control import outgoing_client, own_credentials
from appliance.broker.epochs.history import Epochs
from appliance.broker.epochs.turns import Demotion
from appliance.errors import BrokerError
from appliance.settings.roles import BrokerConfig
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.promotion import Promotion
from gantrymq.errors import BodyError, GantryError
from gantrymq.remoting.admin_bodies import KVTable
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

TIMEOUT_S = 3.0
ID_BY_CHANCE_MIN = 1 << 30  # and below its double, which all clients can read
logger = logging.getLogger(__name__)


class Members:
    """Asks on connections of its own; who does not answer is as if not there."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config

    async def free_id(self, master: str) -> int:
        """Return an id for a slave of that master: the one that it had as a slave, else the lowest that no other has.

        A slave that is down keeps its id, which no name server tells then; the master's is free for sure. Where the
        master or all name servers are silent, it is one that no other has by chance.
        """
        async with self._client() as client:
            addresses = await self._addresses(client)
            told = (await self._figures(client, master)).get("slaveIdBefore", "")
        taken = {number for number, address in addresses.items() if address != master}
        before = int(told) if told.isdecimal() else 0
        if before > 0 and before not in taken:
            return before
        if not told or not addresses:
            logger.warning("no member reports a free broker id", extra={"event": "broker_id_by_chance"})
            return ID_BY_CHANCE_MIN + secrets.randbelow(ID_BY_CHANCE_MIN)
        return next(number for number in range(1, len(taken) + 2) if number not in taken)

    async def successor(self, epoch: int) -> Demotion | None:
        """Return what a master of this epoch has to become when a member is the master of a later one."""
        async with self._client() as client:
            addresses = (await self._addresses(client)).values()
            told = await asyncio.gather(*(self._figures(client, address) for address in addresses))
        later = [
            Demotion(int(table.get("epoch", "0")), address, table.get("epochId", ""))
            for address, table in zip(addresses, told, strict=True)
            if int(table.get("epoch", "0")) > epoch and table.get("brokerRole", "SLAVE") != "SLAVE"
        ]
        return max(later, default=None)

    async def promotion(
        self, own_address: str, name_servers: Sequence[str], accepted_loss: int, *, from_apache: bool = False
    ) -> Promotion:
        """What speaks against making this slave the master, as all members and these name servers answer now."""
        config = self._config
        if not name_servers:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "no name server is known to ask: set namesrvAddr")
        async with AdminClient(
            name_servers, timeout_s=TIMEOUT_S, credentials=own_credentials(config), tls=config.outgoing_tls
        ) as admin:
            try:
                return await admin.succession.promotion(
                    config.broker_name, own_address, accepted_loss=accepted_loss, from_apache=from_apache
                )
            except GantryError as exc:
                raise BrokerError(ResponseCode.SYSTEM_ERROR, f"the other members can't be asked: {exc}") from exc

    async def tell(self, address: str, epochs: Epochs, master: str) -> bool:
        """Tell a member that these epochs are those of the master now; say if it answered that it knows as much."""
        fields = {"brokerName": self._config.broker_name, "master": master}
        fields |= {"epoch": str(epochs.highest), "epochId": epochs.highest_id}
        request = RemotingCommand.request(RequestCode.TELL_EPOCH, fields)
        async with self._client() as client:
            try:
                answer = await client.invoke(address, request, timeout_s=TIMEOUT_S)
            except GantryError:
                return False
        known = answer.ext_fields.get("epochHighest", "")
        return answer.code == ResponseCode.SUCCESS and known.isdecimal() and int(known) >= epochs.highest

    async def figures(self, address: str) -> dict[str, str]:
        """What a member tells of itself; nothing when it does not answer."""
        async with self._client() as client:
            return await self._figures(client, address)

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[RemotingClient]:
        client = outgoing_client(self._config, TIMEOUT_S)
        try:
            yield client
        finally:
            await client.close()

    async def _addresses(self, client: RemotingClient) -> dict[int, str]:
        """Id to address, from the first name server that answers."""
        for server in self._config.namesrv_addresses.split(";"):
            body = await _ask(client, server.strip(), RequestCode.GET_BROKER_CLUSTER_INFO) if server.strip() else b""
            with contextlib.suppress(BodyError):  # the next one may tell
                if body:
                    data = ClusterInfo.from_json(body).broker_addr_table.get(self._config.broker_name)
                    return dict(data.broker_addrs) if data is not None else {}
        return {}

    async def _figures(self, client: RemotingClient, address: str) -> dict[str, str]:
        body = await _ask(client, address, RequestCode.GET_BROKER_RUNTIME_INFO)
        try:
            return KVTable.from_json(body).table if body else {}
        except BodyError:
            return {}


async def _ask(client: RemotingClient, address: str, code: RequestCode) -> bytes:
    """The body of the answer; none when there is none."""
    try:
        answer = await client.invoke(address, RemotingCommand.request(code), timeout_s=TIMEOUT_S)
    except GantryError:
        return b""
    return answer.body if answer.code == ResponseCode.SUCCESS else b""
