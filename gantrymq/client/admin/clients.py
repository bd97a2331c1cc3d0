"""Admin calls about connected clients: a group's consumers and producers, what a consumer says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gantrymq.client.admin.calls import AdminCalls
from gantrymq.client.connection.answer_fields import int_field
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import ConsumerConnection, ProducerConnection
from gantrymq.remoting.bodies import ProxiedClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.json_body import Body, json_field, list_of

CONNECTION_PAGES_MAX = 100  # a broker has 10 000 connections, 500 a page


@dataclass
class ProducerInfo(Body):
    """A producer as 328 lists it."""

    client_id: str = ""
    remote_ip: str = json_field(name="remoteIP", default="")
    language: str = ""
    version: int = 0
    last_update_timestamp: int = 0


@dataclass
class OpenConnection(Body):
    """A connection as GantryMQ's brokers list it (29403). Times: ms since the epoch. requests: since it was opened.

    client_ids: none for what sends no heartbeat, such as a tool. groups: how many, when not all are named.
    proxy, proxied: of a proxy for clients of RocketMQ 5, where it listens and who uses this broker through it.
    """

    number: int = 0
    address: str = ""
    opened_at: int = 0
    last_seen_at: int = 0
    tls: bool = False
    account: str = ""
    requests: int = 0
    client_ids: list[str] = field(default_factory=list)
    language: str = ""
    version: int = 0
    producer_groups: list[str] = field(default_factory=list)
    consumer_groups: list[str] = field(default_factory=list)
    groups: int = 0
    proxy: str = ""
    proxied: list[ProxiedClient] = json_field(read=list_of(ProxiedClient), default=list)


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

    async def connections_at(self, address: str) -> list[OpenConnection]:
        """Every open connection of a GantryMQ broker. Apache's brokers refuse with REQUEST_CODE_NOT_SUPPORTED."""
        found: list[OpenConnection] = []
        after = 0
        for _ in range(CONNECTION_PAGES_MAX):
            answer = await self._calls.call(address, RequestCode.GET_CONNECTIONS, {"after": str(after)})
            page = fastjson.loads(answer.body)
            found += [OpenConnection.from_dict(each) for each in page.get("connections") or ()]
            after = int(page.get("next") or 0)
            if not after:
                break
        return found

    async def disconnect_at(self, address: str, *, client_id: str = "", remote: str = "") -> int:
        """Close the connections of a client id, of a remote address ("ip:port"), or of both; how many these were.

        Clients connect again by themselves. Apache's brokers refuse with REQUEST_CODE_NOT_SUPPORTED.
        """
        wanted = {key: value for key, value in (("clientId", client_id), ("address", remote)) if value}
        answer = await self._calls.call(address, RequestCode.CLOSE_CONNECTIONS, wanted)
        return int_field(answer, "count", address)
