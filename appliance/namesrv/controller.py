"""NamesrvController: builds the name server's parts, runs them, closes them.

    async with NamesrvController(config) as namesrv:
        ...  # serves on namesrv.port

Two things happen without a request: a broker whose connection closes is removed at once, and a scan removes brokers
that were silent too long. Clients that ask for routes hold no state here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from appliance.acl.access import AccessOptions
from appliance.acl.account_book import AccountBook
from appliance.acl.account_file import AccountFileError
from appliance.acl.namesrv_access import ANY, NamesrvAccess
from appliance.audit.routes import audited
from appliance.errors import StartError
from appliance.namesrv.kv_config import KVConfigManager
from appliance.namesrv.route_changes import RouteChanges
from appliance.namesrv.route_info import RouteInfoManager
from appliance.namesrv.table import LANE, TABLE
from appliance.process.gc_pacing import GcPacer
from appliance.process.malloc import MemoryTrimmer
from appliance.process.tasks import running
from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import LaneLimits
from appliance.remoting.lanes import Lanes
from appliance.remoting.route_table import routes_of
from appliance.remoting.server import RemotingServer
from appliance.remoting.tls import server_tls
from appliance.settings.live import LiveConfig
from appliance.settings.loader import live_keys
from appliance.settings.properties_file import PropertiesFile
from appliance.settings.roles import NamesrvConfig

logger = logging.getLogger(__name__)

LANE_CAPACITY = 100_000  # requests; RocketMQ's queue is unbounded
FIRST_SCAN_S = 5.0


class NamesrvController:
    """One name server. file, ignored: see LiveConfig. clock: monotonic seconds."""

    def __init__(
        self,
        config: NamesrvConfig,
        *,
        file: PropertiesFile | None = None,
        ignored: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.live_config = LiveConfig([config], changeable=live_keys(NamesrvConfig), file=file, ignored=ignored)
        self.clock = clock
        self.routes = RouteInfoManager()
        self.kv_config = KVConfigManager(config.kv_config_path)
        home = config.rocketmq_home  # without it there are no accounts, and this machine alone may write
        self.accounts = AccountBook(home, default_file=config.acl_file) if home is not None else None
        self.lanes = Lanes({LANE: LaneLimits(LANE_CAPACITY)})
        self.tls = server_tls(config)
        self._server = RemotingServer(
            self.lanes,
            host=config.bind_address,
            port=config.listen_port,
            on_close=self._connection_closed,
            access=self._gate(),
            tls=self.tls,
            sockets=config,
        )
        self.changes = RouteChanges()
        self._stack = contextlib.AsyncExitStack()

    def _gate(self) -> NamesrvAccess | None:
        config = self.config
        if config.write_access == ANY:
            return None
        options = AccessOptions(config.acl_require_stamp, config.acl_stamp_window_ms)
        return NamesrvAccess(self.accounts, write_access=config.write_access, options=options)

    def _load_accounts(self) -> None:
        if self.accounts is not None:
            try:
                self.accounts.load()
            except AccountFileError as exc:
                raise StartError(f"accounts can't be read: {exc}") from exc

    @property
    def port(self) -> int:
        """The port in use; what was asked for until it listens."""
        return self._server.port

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            self.kv_config.load()
            self._load_accounts()
            stack.push_async_callback(self.lanes.close)
            await self._server.open()
            stack.push_async_callback(self._server.close)
            self._server.serve(audited(routes_of(TABLE, self), self.config.kv_config_path.parent))
            await stack.enter_async_context(
                running(
                    self._server,
                    _BrokerScan(self.config, self.remove_expired_brokers),
                    GcPacer(),
                    MemoryTrimmer(),
                    *[part for part in (self.tls, self.accounts) if part],
                )
            )
            self._stack = stack.pop_all()
        logger.info("name server is running", extra={"event": "namesrv_started", "port": self.port})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._stack.__aexit__(kind, exc, trace)
        finally:
            logger.info("name server stopped", extra={"event": "namesrv_stopped"})

    async def run(self) -> None:
        """Serve until cancelled."""
        async with self:
            await asyncio.Event().wait()

    # -- what happens without a request -------------------------------------------------------------------------------

    def remove_expired_brokers(self) -> None:
        """Drop brokers that were silent for longer than brokerChannelExpiredTime, and their connections."""
        for address, connection in self.routes.remove_expired(self.clock(), self.config.broker_expiry_ms / 1000):
            logger.warning("broker expired", extra={"event": "broker_expired", "address": address})
            if isinstance(connection, ServerConnection):
                connection.close(f"broker {address} was silent too long")

    def _connection_closed(self, connection: ServerConnection) -> None:
        for address in self.routes.connection_closed(connection, self.clock()):
            logger.warning("broker left", extra={"event": "broker_connection_closed", "address": address})


class _BrokerScan:
    """The service that looks for silent brokers. look: removes those there are."""

    def __init__(self, config: NamesrvConfig, look: Callable[[], None]) -> None:
        self._config = config
        self._look = look

    async def run(self) -> None:
        await asyncio.sleep(FIRST_SCAN_S)
        while True:
            self._look()
            await asyncio.sleep(self._config.scan_interval_ms / 1000)
