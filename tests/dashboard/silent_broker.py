"""A second broker of the tests' cluster that takes connections and answers nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from appliance.namesrv.route_info import BrokerIdentity
from gantrymq.remoting.admin_bodies import DataVersion
from gantrymq.remoting.registration import finished
from tests.harness import ServingCluster

NAME = "broker-silent"


@contextlib.asynccontextmanager
async def silent_broker(cluster: ServingCluster) -> AsyncIterator[str]:
    """Its address, registered with the cluster's name server while the block runs."""
    writers = []

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    broker = BrokerIdentity("DefaultCluster", NAME, 0, address)
    routes = cluster.namesrv.routes
    steps = routes.registering(
        broker, ha_address="", topics={}, data_version=DataVersion(), filter_servers=[], connection=object(),
        now_s=cluster.namesrv.clock(),
    )  # fmt: skip
    finished(steps)
    try:
        yield address
    finally:
        routes.unregister_broker(broker)
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()
