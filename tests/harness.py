"""Real brokers for tests, on 127.0.0.1 and ports of their own.

async with serving(tmp_path) as cluster:      name server and broker on the test's own loop: fast, inspectable
with LocalCluster(tmp_path) as cluster:       the same as processes, to be killed or restarted
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.bench.gantry_peer import GantryPeer
from appliance.broker.controller import BrokerController
from appliance.namesrv.controller import NamesrvController
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from store.base.config import MessageStoreConfig
from tests.any_disk import ANY_DISK, SLOW_DISK

SMALL_STORE: dict[str, Any] = {
    "commit_log_file_bytes": 16 * 1024 * 1024,
    "consume_queue_file_bytes": 20_000 * 20,
    "index_slots": 5_000,
    "index_entries": 20_000,
    **ANY_DISK,
}


class LocalCluster(GantryPeer):
    """A name server and a broker as child processes; `kill_broker`, `stop_broker`, `start_broker` do just that."""

    def broker_properties(self) -> dict[str, str]:
        return SLOW_DISK | super().broker_properties()


@dataclass
class ServingCluster:
    """What runs on the test's loop."""

    namesrv: NamesrvController
    broker: BrokerController

    @property
    def namesrv_address(self) -> str:
        return f"127.0.0.1:{self.namesrv.port}"

    @property
    def broker_address(self) -> str:
        return self.broker.address


@contextlib.asynccontextmanager
async def serving(
    folder: Path,
    *,
    broker: dict[str, Any] | None = None,
    store: dict[str, Any] | None = None,
    namesrv: dict[str, Any] | None = None,
) -> AsyncIterator[ServingCluster]:
    """Serve from `folder` with small store files; `broker`, `store` and `namesrv` are fields of their settings."""
    namesrv_config = NamesrvConfig(listen_port=0, kv_config_path=folder / "kvConfig.json", **(namesrv or {}))
    async with NamesrvController(namesrv_config) as name_server:
        addresses = f"127.0.0.1:{name_server.port}"
        broker_config = BrokerConfig(listen_port=0, namesrv_addresses=addresses, **(broker or {}))
        store_config = MessageStoreConfig(root=folder / "store", **{**SMALL_STORE, **(store or {})})
        async with BrokerController(broker_config, store_config) as controller:
            await controller.outer_api.register_all()
            yield ServingCluster(name_server, controller)
