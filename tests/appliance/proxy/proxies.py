"""A proxy in front of a name server and a broker, and a client of its own, all on the test's loop."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.const import Cardinality

from appliance.proxy.controller import ProxyController
from appliance.proxy.nghttp2_connection import compiled_http2
from appliance.proxy.protocol import definition_pb2 as pb
from appliance.proxy.protocol import service_pb2
from appliance.proxy.service import SERVICE
from appliance.settings.roles import ProxyConfig
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.message.model import MessageExt
from gantrymq.message.topics import TOOLS_GROUP
from gantrymq.remoting.client import RemotingClient
from tests.conftest import missing
from tests.harness import ServingCluster, serving

ENDPOINTS = pb.Endpoints(
    scheme=pb.AddressScheme.DOMAIN_NAME, addresses=[pb.Address(host="outside.example", port=12345)]
)
NUMBERS = itertools.count(1)


@dataclass
class ProxyClient:
    """One client: its id, and further headers."""

    port: int
    client_id: str = "me@1@0@abc"
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.channel = Channel("127.0.0.1", self.port)

    @property
    def metadata(self) -> dict[str, str]:
        mine = {"x-mq-client-id": self.client_id, "x-mq-language": "PYTHON", "x-mq-client-version": "5.1.2"}
        return {name: value for name, value in {**mine, **self.headers}.items() if value}

    async def call(self, name: str, *, timeout_s: float = 30.0, **fields: Any) -> Any:
        """One request, one answer."""
        request, answer = _types(name)
        method = UnaryUnaryMethod(self.channel, SERVICE + name, request, answer)
        return await method(request(**fields), timeout=timeout_s, metadata=self.metadata)

    async def answers(self, name: str, *, timeout_s: float = 30.0, **fields: Any) -> list[Any]:
        """One request, all its answers."""
        request, answer = _types(name)
        method = UnaryStreamMethod(self.channel, SERVICE + name, request, answer)
        return await method(request(**fields), timeout=timeout_s, metadata=self.metadata)

    @contextlib.asynccontextmanager
    async def telemetry(self, settings: Any = None) -> AsyncIterator[Any]:
        """An open stream; with settings, they have been sent and answered: `stream.settings`."""
        request, answer = _types("Telemetry")
        opening = self.channel.request(
            SERVICE + "Telemetry", Cardinality.STREAM_STREAM, request, answer, metadata=self.metadata
        )
        async with opening as stream:
            if settings is not None:
                await stream.send_message(request(settings=settings))
                told = await stream.recv_message()
                assert told is not None and told.status.code == 20000, told
                stream.settings = told.settings
            yield stream
            await stream.cancel()

    def message(self, topic: str, body: bytes = b"hello", **system: Any) -> pb.Message:
        """A message with a new id."""
        system.setdefault("message_id", f"01{next(NUMBERS):032X}")
        system.setdefault("message_type", pb.MessageType.NORMAL)
        system["born_timestamp"] = system.get("born_timestamp") or {"seconds": int(time.time())}
        return pb.Message(
            topic=pb.Resource(name=topic),
            body=body,
            system_properties=pb.SystemProperties(**system),
            user_properties={},
        )


def _types(name: str) -> tuple[Any, Any]:
    method = service_pb2.DESCRIPTOR.services_by_name["MessagingService"].methods_by_name[name]
    return getattr(service_pb2, method.input_type.name), getattr(service_pb2, method.output_type.name)


@dataclass
class ProxyCluster:
    cluster: ServingCluster
    proxy: ProxyController
    client: ProxyClient


@contextlib.asynccontextmanager
async def proxied(
    folder: Path, *, broker: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[ProxyCluster]:
    """Serve; settings: fields of ProxyConfig."""
    async with serving(folder, broker=broker) as cluster:
        config = ProxyConfig(listen_port=0, namesrv_addresses=cluster.namesrv_address, **settings)
        async with ProxyController(config) as proxy:
            client = ProxyClient(proxy.port)
            try:
                yield ProxyCluster(cluster, proxy, client)
            finally:
                client.channel.close()


def consumer_settings(group: str = "readers", topic: str = "orders", expression: str = "a || b") -> pb.Settings:
    """Those of a push consumer."""
    wanted = pb.Settings(client_type=pb.ClientType.PUSH_CONSUMER)
    wanted.subscription.group.name = group
    filtered = pb.FilterExpression(type=pb.FilterType.TAG, expression=expression)
    wanted.subscription.subscriptions.add(topic=pb.Resource(name=topic), expression=filtered)
    return wanted


def require_compiled_door() -> None:
    """Skip aloud, in CI fail, where libnghttp2 or the compiled module is missing."""
    module, why = compiled_http2()
    if module is None:
        missing("the proxy's compiled HTTP/2", why)


async def stored(cluster: ProxyCluster, topic: str = "orders") -> list[MessageExt]:
    """All messages of the topic that consumers can see, in order within a queue."""
    found: list[MessageExt] = []
    remoting, address = RemotingClient(), cluster.cluster.broker_address
    calls = BrokerCalls(remoting)
    try:
        for queue_id in range(8):
            end, at = await calls.max_offset(address, topic, queue_id), 0
            while at < end:
                result = await calls.pull(address, TOOLS_GROUP, topic, queue_id, at, subscription="*")
                found += result.messages
                at = result.next_offset
    finally:
        await remoting.close()
    return found
