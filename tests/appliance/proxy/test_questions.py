"""Tools ask a client behind a proxy through its broker: the stacks of its threads, and how it consumes one message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from appliance.proxy.protocol.definition_pb2 import Code, Status
from appliance.proxy.protocol.service_pb2 import TelemetryCommand, ThreadStackTrace, VerifyMessageResult
from gantrymq import AdminClient
from gantrymq.errors import ResponseError
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance.proxy.proxies import ProxyCluster, consumer_settings, proxied, stored
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("door")


@asynccontextmanager
async def consuming(folder: Path) -> AsyncIterator[tuple[ProxyCluster, AdminClient, Any]]:
    """A cluster, and a consumer with its stream that the broker knows of."""
    async with proxied(folder) as scene, AdminClient(scene.cluster.namesrv_address) as admin:
        await admin.topics.create(TopicConfig("orders", 1, 1))

        async def is_known() -> bool:
            return bool(scene.cluster.broker.proxied.members("readers"))

        async with scene.client.telemetry(consumer_settings()) as stream:
            await until(is_known)
            yield scene, admin, stream


async def asked(stream: Any) -> TelemetryCommand:
    while True:
        command: TelemetryCommand = await stream.recv_message()
        if command.WhichOneof("command") != "settings":
            return command


async def test_a_client_behind_a_proxy_prints_its_stacks(tmp_path: Path) -> None:
    async with consuming(tmp_path) as (scene, admin, stream):
        address, client_id = scene.cluster.broker_address, scene.client.client_id
        info = await admin.clients.running_info_at(address, "readers", client_id)
        assert info["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_POP" and "jstack" not in info
        assert info["subscriptionSet"][0]["subString"] == "a || b"
        asking = asyncio.create_task(admin.clients.running_info_at(address, "readers", client_id, with_stacks=True))
        nonce = (await asked(stream)).print_thread_stack_trace_command.nonce
        trace = ThreadStackTrace(nonce=nonce, thread_stack_trace="main: at work")
        await stream.send_message(TelemetryCommand(status=Status(code=Code.OK), thread_stack_trace=trace))
        assert (await asking)["jstack"] == "main: at work"
        with pytest.raises(ResponseError, match="not online"):
            await admin.clients.running_info_at(address, "others", client_id)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (Code.OK, "CR_SUCCESS"),
        (Code.FAILED_TO_CONSUME_MESSAGE, "CR_LATER"),
        (Code.NOT_IMPLEMENTED, "CR_THROW_EXCEPTION"),
    ],
)
async def test_a_client_behind_a_proxy_consumes_one_message_for_a_tool(
    tmp_path: Path, code: Code, outcome: str
) -> None:
    async with consuming(tmp_path) as (scene, admin, stream):
        message = scene.client.message("orders", b"look at me", tag="a")
        assert (await scene.client.call("SendMessage", messages=[message])).status.code == Code.OK
        (kept,) = await stored(scene)
        address, client_id = scene.cluster.broker_address, scene.client.client_id
        asking = asyncio.create_task(admin.messages.consume_directly_at(address, "readers", client_id, kept))
        verify = (await asked(stream)).verify_message_command
        assert (verify.message.body, verify.message.topic.name) == (b"look at me", "orders")
        assert verify.message.system_properties.message_id == message.system_properties.message_id
        answer = TelemetryCommand(
            status=Status(code=code, message="as said"), verify_message_result=VerifyMessageResult(nonce=verify.nonce)
        )
        await stream.send_message(answer)
        result = await asking
        assert (result.outcome, result.remark) == (outcome, "as said")
