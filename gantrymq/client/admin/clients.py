"""Admin calls about connected clients: a group's consumers and producers, what a consumer says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gantrymq.client.admin.calls import AdminCalls
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import ConsumerConnection, ProducerConnection
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.json_body import Body, json_field


@dataclass
class ProducerInfo(Body):
    """A producer as 328 lists it."""

    client_id: str = ""
    remote_ip: str = json_field(name="remoteIP", default="")
    language: str = ""
    version: int = 0
    last_update_timestamp: int = 0


class ClientAdmin:
    """`admin.clients`: the clients at one broker."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def consumers_at(self, address: str, group: str) -> ConsumerConnection:
        """The group's consumers and their subscriptions. ResponseError CONSUMER_NOT_ONLINE when there is none."""
        answer = await self._calls.call(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
        return ConsumerConnection.from_json(answer.body)

    async def producers_of_group_at(self, address: str, group: str) -> ProducerConnection:
        """The group's producers. ResponseError when there is none."""
        answer = await self._calls.call(address, RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": group})
        return ProducerConnection.from_json(answer.body)

    async def running_info_json_at(self, address: str, group: str, client_id: str) -> bytes:
        """What a running consumer says of itself: JSON in fastjson's dialect, as the client wrote it."""
        ext_fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}
        answer = await self._calls.call(address, RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields, timeout_s=11.0)
        return answer.body

    async def running_info_at(
        self, address: str, group: str, client_id: str, *, with_stacks: bool = False
    ) -> dict[str, Any]:
        """The same as an object; mqTable is keyed by MessageQueue. with_stacks: member jstack has the text."""
        ext_fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "true" if with_stacks else "false"}
        answer = await self._calls.call(address, RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields, timeout_s=11.0)
        info = fastjson.loads(answer.body)
        return info if isinstance(info, dict) else {}

    async def producers_at(self, address: str) -> dict[str, list[ProducerInfo]]:
        """Every producer group at this broker with its producers. Apache's brokers know this since 4.9.4."""
        data = (
            fastjson.loads((await self._calls.call(address, RequestCode.GET_ALL_PRODUCER_INFO)).body).get("data") or {}
        )
        return {group: [ProducerInfo.from_dict(each) for each in members] for group, members in data.items()}
