"""ProxyController: builds the proxy's parts, runs them, closes them.

async with ProxyController(config) as proxy:
    ...  # serves on proxy.port
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from types import TracebackType
from typing import Self

from appliance.acl.account_book import AccountBook
from appliance.acl.account_file import AccountFileError
from appliance.errors import StartError
from appliance.process import tasks
from appliance.process.gc_pacing import GcPacer
from appliance.process.malloc import MemoryTrimmer
from appliance.proxy.brokers import Brokers
from appliance.proxy.callers import Gate
from appliance.proxy.clients import ClientBook
from appliance.proxy.http2 import ClientConnection, Room
from appliance.proxy.nghttp2_connection import Nghttp2Connection, compiled_http2
from appliance.proxy.questions import Questions
from appliance.proxy.receiving import Receiving
from appliance.proxy.renewals import Renewals
from appliance.proxy.routing import Routing
from appliance.proxy.sending import Sending
from appliance.proxy.service import Service
from appliance.proxy.settings_answer import collector_at
from appliance.proxy.telemetry import Telemetry
from appliance.proxy.transactions import Transactions
from appliance.remoting.acceptor import PlainListener
from appliance.remoting.tls import ServerTls, server_tls
from appliance.remoting.tls_listener import TlsListener
from appliance.settings.appliance_config import join_address
from appliance.settings.roles import ProxyConfig, outward_address
from gantrymq.remoting.codes import RequestCode
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)
logging.getLogger("grpclib").setLevel(logging.WARNING)  # each call that a client gives up is a line otherwise

BACKLOG = 1024
IDLE_S_MAX = 120.0  # a connection without a call, RocketMQ's grpcClientIdleTimeMills
IDLE_SCAN_S = 10.0
CLOSE_S_MAX = 3.0  # for calls that are being served when the proxy ends
ALPN = ["h2"]

AnyConnection = ClientConnection | Nghttp2Connection


class ProxyController:
    """One proxy."""

    def __init__(self, config: ProxyConfig) -> None:
        self.config = config
        self.port = config.listen_port
        self.clients = ClientBook()
        self.renewals = Renewals(lambda client_id: self.clients.get(client_id) is not None)
        self._accounts = _account_book(config)
        transactions = Transactions(lambda: self.brokers, self.clients)
        questions = Questions(self.clients, lambda *asked: self.telemetry.ask(*asked))
        self.brokers = Brokers(
            config.namesrv_addresses,
            config.outgoing_tls,
            self.clients,
            lambda: self.endpoint,
            {
                RequestCode.CHECK_TRANSACTION_STATE: transactions.asked,
                RequestCode.GET_CONSUMER_RUNNING_INFO: questions.running_info,
                RequestCode.CONSUME_MESSAGE_DIRECTLY: questions.consume,
            },
            self._accounts,
        )
        self.telemetry = Telemetry(self.clients, self.brokers, collector_at(config.metric_collector))
        service = Service(Gate(self._accounts, requires_stamp=config.acl_require_stamp))
        self._add_calls(service, transactions)
        self._mapping = service.mapping
        self._tls = server_tls(config, ALPN)
        self._listener = self._make_listener(self._tls)
        self._compiled, self._why_not_compiled = compiled_http2()
        self._connections: set[AnyConnection] = set()
        self._room = Room()
        self._stack = contextlib.AsyncExitStack()

    def _add_calls(self, service: Service, transactions: Transactions) -> None:
        routing, sending = Routing(self.brokers, self.telemetry.routed), Sending(self.brokers)
        receiving = Receiving(self.brokers, self.renewals)
        self.telemetry.ended = receiving.client_ended
        service.answers("ReceiveMessage", receiving.receive_message)
        service.unary("AckMessage", receiving.ack_message)
        service.unary("ChangeInvisibleDuration", receiving.change_invisible_duration)
        service.unary("ForwardMessageToDeadLetterQueue", receiving.forward_to_dead_letters)
        service.unary("QueryRoute", routing.query_route)
        service.unary("QueryAssignment", routing.query_assignment)
        service.unary("SendMessage", sending.send_message)
        service.unary("RecallMessage", sending.recall_message)
        service.unary("EndTransaction", transactions.end_transaction)
        service.unary("Heartbeat", self.telemetry.heartbeat)
        service.unary("NotifyClientTermination", self.telemetry.notify_client_termination)
        service.talk("Telemetry", self.telemetry.telemetry)
        service.refuse_the_rest()

    def _make_listener(self, tls: ServerTls | None) -> PlainListener:
        host, port = self.config.bind_address, self.config.listen_port
        if tls is None:
            return PlainListener(self._make_connection, host=host, port=port, backlog=BACKLOG)
        return TlsListener(self._make_connection, tls, host=host, port=port, backlog=BACKLOG)

    def _make_connection(self) -> AnyConnection:
        connection: AnyConnection
        if self._compiled is not None:
            connection = Nghttp2Connection(self._compiled, self._mapping, self._room, self._connections.discard)
        else:
            connection = ClientConnection(self._mapping, self._room, self._connections.discard)
        self._connections.add(connection)
        return connection

    @property
    def endpoint(self) -> str:
        """host:port where it listens, for people."""
        host = self.config.bind_address
        return join_address(outward_address() if host in ("", "0.0.0.0", "::") else host, self.port)

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            if self._accounts is not None:
                try:
                    self._accounts.load()
                except AccountFileError as exc:
                    raise StartError(f"accounts can't be read: {exc}") from exc
            stack.push_async_callback(self.brokers.close)
            try:
                self.port = await self._listener.open()
            except OSError as exc:
                where = f"{self.config.bind_address}:{self.config.listen_port}"
                raise StartError(
                    f"port {where} can't be opened: {exc.strerror}: choose another grpcServerPort"
                ) from exc
            stack.push_async_callback(self._close_connections)
            stack.push_async_callback(self._listener.close)
            self._listener.accept()
            services: list[tasks.Service] = [part for part in (self._tls, self._accounts) if part]
            services += [self, self.clients, self.renewals, GcPacer(), MemoryTrimmer()]
            await stack.enter_async_context(tasks.running(*services))
            self._stack = stack.pop_all()
        door = "libnghttp2" if self._compiled is not None else f"grpclib ({self._why_not_compiled})"
        logger.info("proxy is running", extra={"event": "proxy_started", "port": self.port, "http2": door})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, exc, trace)

    async def run(self) -> None:
        """End connections that ask for nothing, until cancelled."""
        while True:
            await asyncio.sleep(IDLE_SCAN_S)
            now = time.monotonic()
            for connection in list(self._connections):
                if not connection.has_streams and now - connection.last_data_at > IDLE_S_MAX:
                    connection.end()

    async def _close_connections(self) -> None:
        connections = list(self._connections)
        for connection in connections:
            connection.end()
        with contextlib.suppress(TimeoutError):
            async with timeout(CLOSE_S_MAX):
                await asyncio.gather(*(connection.wait_closed() for connection in connections))


def _account_book(config: ProxyConfig) -> AccountBook | None:
    if not config.acl_enable:
        return None
    home = config.accounts_home()
    if home is None:
        raise StartError("aclEnable=true needs rocketmqHome: the folder of the brokers' accounts")
    return AccountBook(home, default_file=config.acl_file)
