"""Tools ask Java's client behind a proxy: for its stacks, and to consume a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq import AdminClient, Message, Producer, PullConsumer
from gantrymq.client.consume.subscription import ConsumeFrom
from tests.faults.grpc.proxy_process import proxy_process
from tests.harness import LocalCluster
from tests.interop.grpc.flows import make_topics
from tests.interop.grpc.java_side import LONG_S, side
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
async def test_a_java_consumer_prints_its_stacks_and_consumes_what_a_tool_hands_to_it(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster") as cluster:
        await make_topics(cluster.namesrv_address)
        async with AdminClient(cluster.namesrv_address) as admin, Producer(cluster.namesrv_address) as producer:
            await producer.send_many([Message("normal", b"good", tags="t"), Message("normal", b"bad", tags="t")])
            async with PullConsumer(
                cluster.namesrv_address, group="reader", consume_from=ConsumeFrom.FIRST_OFFSET
            ) as reader:
                reader.subscribe("normal")
                kept = [await anext(aiter(reader)) for _ in range(2)]
            with (
                proxy_process(cluster.namesrv_address, tmp_path / "proxy.log") as (_, port),
                side(tmp_path, "asked", "Asked", f"127.0.0.1:{port}") as program,
            ):

                async def is_known() -> bool:
                    return (await admin.groups.members("java-asked")).is_online

                await until(is_known, LONG_S)
                [client_id] = (await admin.groups.members("java-asked")).client_ids
                address = cluster.broker_address
                info = await admin.clients.running_info_at(address, "java-asked", client_id, with_stacks=True)
                assert "java.lang.Thread" in info["jstack"] and "main" in info["jstack"]
                outcomes = {
                    message.body: (
                        await admin.messages.consume_directly_at(address, "java-asked", client_id, message)
                    ).outcome
                    for message in kept
                }
                assert outcomes == {b"good": "CR_SUCCESS", b"bad": "CR_LATER"}
                assert sorted(program.bodies("GOT")) == ["bad", "good"]
