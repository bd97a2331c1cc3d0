"""ClientSession: the connections, routes and heartbeats of one producer or consumer.

One remoting client, the routes, the heartbeat to every broker that matters, and the tasks that keep them fresh. A
session belongs to one producer or consumer and has its own client id and its own connection to each broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable, Mapping

from gantrymq.client.connection.background import Background, every
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.greetings import Greetings
from gantrymq.client.connection.moves import Moves
from gantrymq.client.connection.name_servers import NameServers
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.connection.routes import LOOK_AGAIN_S, REFRESH_S, Routes
from gantrymq.client.connection.silence import Silence
from gantrymq.errors import ClientClosed, ConnectError, GantryError, ResponseError
from gantrymq.forks import notice_fork
from gantrymq.message.ids import local_address
from gantrymq.message.namespaces import Namespace
from gantrymq.remoting.bodies import HeartbeatData
from gantrymq.remoting.client import RemotingClient, RequestHandler
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.home_loop import running_loop
from gantrymq.remoting.outages import Outages
from gantrymq.timeouts import timeout, wait_for_event

logger: logging.Logger = logging.getLogger(__name__)

REMARK_REPEAT_S = 600.0  # between two log lines of the same remark
COME_BACK_S = 1.0  # between two tries of a consumer to connect to a broker it has lost
REJOIN_S = 3 * COME_BACK_S  # in which the consumers of a broker that was started anew come back
MISSING_MAX_S = 4 * REJOIN_S  # in which those that have not come back by then are still expected, at the most
HEARTBEAT_S = 30.0  # RocketMQ: heartbeatBrokerInterval; brokers forget a client after 120 s of silence
# Answers to a heartbeat that the same heartbeat gets again: it asks for too much, or for what the account may not have.
REFUSED_FOR_GOOD = frozenset({ResponseCode.INVALID_PARAMETER.value, ResponseCode.NO_PERMISSION.value})


def local_ip() -> str:
    """The address from which this host reaches others."""
    packed = local_address()
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


class ClientSession:
    """Open with `open`, close with `close`; both from the same event loop."""

    def __init__(
        self,
        options: ClientOptions,
        *,
        heartbeat: Callable[[str], HeartbeatData],
        heartbeat_slaves: bool = False,
    ) -> None:
        """heartbeat: makes the heartbeat of a client id. heartbeat_slaves: send it to slaves as well: one consumes
        from them, but sends to masters only."""
        self._instance_name = options.instance_name
        self._name_client()
        self.outages: Outages = Outages()
        self.remoting: RemotingClient = RemotingClient(
            credentials=options.credentials,
            tls=options.tls,
            serialize_type=options.serialize_type,
            outages=self.outages,
        )
        self.name_servers: NameServers = NameServers(self.remoting, options.name_servers, outages=self.outages)
        self.namespace: Namespace = Namespace(options.namespace)
        self.routes: Routes = Routes(self.name_servers, self.namespace)
        self.calls: BrokerCalls = BrokerCalls(self.remoting, namespace=self.namespace)
        self.background: Background = Background()
        self.moves: Moves = Moves(self.routes, self.background)
        self.silence: Silence = Silence(self.routes, self.moves, self.remoting)
        self.routes.on_moved = self._meet_again
        self.routes.on_headless = self.moves.without_master
        self._routes_wanted = asyncio.Event()
        self.routes.on_back = self._routes_wanted.set
        self.when_routes_changed: Callable[[], object] = lambda: None  # after a look at all of them
        self.when_moved: list[Callable[[str], object]] = []  # called with the name of a broker that has a new master
        self.is_open: bool = False
        self._was_closed = False
        self._heartbeat = heartbeat
        self._heartbeat_slaves = heartbeat_slaves
        self.greetings: Greetings = Greetings(self.background, self._greet)
        self._refusals: dict[str, ResponseError] = {}  # of a broker's last heartbeat: it will not change its mind
        self._greeted: set[str] = set()
        self.before_greeting: Callable[[str], Awaitable[None]] | None = None  # of a broker that may have forgotten us
        self._connected_to: set[str] = set()  # brokers, once at least
        self._forgetful: set[str] = set()  # brokers: connected to again, and not greeted since
        self._back_at: dict[str, float] = {}  # when a broker was connected to again, on the loop's clock
        self.remoting.on_connected = self._connected
        self._remarks: dict[str, tuple[str, float]] = {}  # by broker: what it said last, and when that was logged
        self._brokers_changed = asyncio.Event()

    def _name_client(self) -> None:
        self._process_id = os.getpid()
        self.client_id: str = f"{local_ip()}@{self._instance_name or f'{self._process_id}#{os.urandom(6).hex()}'}"

    def answer_requests(self, handlers: Mapping[int, RequestHandler]) -> None:
        """Have requests that brokers send to this client answered; one handler a code."""
        self.remoting.request_handlers.update(handlers)

    def open(self) -> None:
        """Start the periodic work. Nothing is sent before a route is known. A closed session stays closed."""
        if self.is_open:
            return
        if self._was_closed:
            raise ClientClosed("closed already: make a new client")
        notice_fork()
        if self._process_id != os.getpid():
            self._name_client()  # made before a fork: each child is another client
        self.remoting.home.enter()
        self.is_open = True
        self.background.start(self._refresh_routes(), "refresh routes")
        self.background.start(self.silence.watch(), "look for silent brokers")
        self.background.start(
            every(HEARTBEAT_S, self._begin_heartbeats, self.outages, wake=self._brokers_changed), "heartbeats"
        )

    def abandon(self) -> None:
        """Count as closed, and close the sockets silently: in a child of a fork, or when the event loop is gone."""
        self.is_open = False
        self._was_closed = True
        self.remoting.abandon()

    def do_at_home(self, act: Callable[[], None]) -> None:
        """Have `act` done by the session's event loop, for a plain function that any thread may call: now when that
        loop runs here, soon when none does. ClientClosed when another one does, or the session's loop is closed."""
        home = self.remoting.home
        if home.loop is None or running_loop() is home.loop:
            act()
        elif running_loop() is None and not home.is_gone:
            home.loop.call_soon_threadsafe(act)
        else:
            home.require()

    def require_home(self) -> None:
        """ClientClosed when the session was opened in another event loop than the one that runs."""
        self.remoting.home.require()

    def require_open(self) -> None:
        """ClientClosed unless the session is open, in the event loop that runs."""
        if not self.is_open:
            raise ClientClosed("not started, or closed already")
        self.require_home()

    async def close(self, *, producer_group: str | None = None, consumer_group: str | None = None) -> None:
        """End the periodic work, leave the groups, close the connections."""
        if not self.is_open:
            return
        self.is_open = False
        self._was_closed = True
        await self.background.close()
        leaving = (
            self.calls.unregister(address, self.client_id, producer_group=producer_group, consumer_group=consumer_group)
            for address in self._greeted
        )
        for outcome in await asyncio.gather(*leaving, return_exceptions=True):
            if isinstance(outcome, GantryError):  # the broker notices when the connection closes
                logger.info("not unregistered: %s", outcome, extra={"event": "not_unregistered", "error": str(outcome)})
        await self.remoting.close()

    def look_again_soon(
        self, topic: str, *, use_template: bool = False, changed: Callable[[], object] | None = None
    ) -> None:
        """Have the topic's route asked for, when that was not done just now: its brokers may have moved. `changed` is
        called if so; use_template: see Routes.look_again."""
        if self.routes.is_look_due(topic, asyncio.get_running_loop().time()):
            self.background.start(self._look_again(topic, use_template, changed), "look at a route again")

    async def _look_again(self, topic: str, use_template: bool, changed: Callable[[], object] | None) -> None:
        try:
            if await self.routes.look_again(topic, use_template=use_template) and changed is not None:
                changed()
        except GantryError as exc:
            logger.info("route not refreshed: %s", exc, extra={"event": "route_not_refreshed", "topic": topic})

    def is_just_back(self, address: str | None, within_s: float = REJOIN_S) -> bool:
        """Whether the broker was connected to again less than within_s ago: it may have been started anew, and know
        only some of its clients yet."""
        at = None if address is None else self._back_at.get(address)
        return at is not None and asyncio.get_running_loop().time() - at < within_s

    def _connected(self, address: str) -> None:
        """Greet a broker at once when the connection to it is not the first: started anew, it would answer pulls for
        the sake of another member, and give this one's queues to that member until the next round of heartbeats."""
        connection = self.remoting.open_connection(address)
        if connection is not None and self.before_greeting is not None:
            connection.when_lost(lambda: self._lost(address))
        if address not in self._connected_to:
            self._connected_to.add(address)
        elif address in self._greeted:
            self._back_at[address] = asyncio.get_running_loop().time()
            self._forgetful.add(address)
            self._brokers_changed.set()

    def _lost(self, address: str) -> None:
        if self.is_open and address in self._greeted:
            self.background.start(self._come_back(address), f"come back to {address}")

    async def _come_back(self, address: str) -> None:
        """Connect again, a try a second, while the broker is one of the routes': a member without queues makes no
        requests, and would be missing until the next round of heartbeats."""
        while address in self._addresses() and self.remoting.open_connection(address) is None:
            await asyncio.sleep(random.uniform(0.5, 1.0) * COME_BACK_S)
            with contextlib.suppress(ConnectError):  # logged by the connection
                await self.remoting.connect(address)

    def meet_brokers(self) -> None:
        """Send a heartbeat to brokers that became known since the last one soon, not at the next round."""
        if not self._greeted.issuperset(self._addresses()):
            self._brokers_changed.set()

    def _meet_again(self, name: str, before: str | None, address: str) -> None:
        """A broker is the master now: it has not heard of this client in that role."""
        if before is not None and before != address:
            self.silence.moved(before)
        self._greeted.discard(address)
        self._forgetful.add(address)  # what its master was told last may not have come to it
        self._brokers_changed.set()
        for act in self.when_moved:
            act(name)
        self.moves.moved()

    async def greet_new_brokers(self) -> None:
        """As meet_brokers, but now: a broker can push only to a client that it knows."""
        if not self._greeted.issuperset(self._addresses()):
            await self.send_heartbeats()

    async def greeting(self, address: str, timeout_s: float) -> RemotingCommand | None:
        """What the broker answered to the last heartbeat over the connection to it; one is sent if there was none."""
        if (known := self.known_greeting(address)) is None:
            begun = self.greetings.begin(address)
            async with timeout(timeout_s):
                await asyncio.wait([begun])
            if begun.cancelled():
                raise ClientClosed("closed meanwhile")
            if (failure := begun.result()) is not None:
                raise failure
            known = self.known_greeting(address)
        return known

    def known_greeting(self, address: str) -> RemotingCommand | None:
        """As `greeting`, without asking. None also when no connection to the broker is open."""
        connection = self.remoting.open_connection(address)
        return None if connection is None else connection.greeting

    @property
    def refusal(self) -> ResponseError | None:
        """Of the last heartbeat to a broker of the routes that will not change its mind, None when none said so."""
        return next((self._refusals[each] for each in self._addresses() if each in self._refusals), None)

    async def send_heartbeats(self) -> None:
        """Register this client at every broker that matters, or keep it registered. Waits for their answers, but not
        for those of brokers that did not give one the last time."""
        await self.greetings.round(self._addresses())

    async def _begin_heartbeats(self) -> None:
        for address in self._addresses():
            self.greetings.begin(address)

    async def _greet(self, address: str) -> GantryError | None:
        self._greeted.add(address)
        try:
            if address in self._forgetful:
                if self.before_greeting is not None:
                    await self.before_greeting(address)
                self._forgetful.discard(address)
            remark = await self.calls.heartbeat(address, self._heartbeat(self.client_id))
        except GantryError as exc:
            if isinstance(exc, ResponseError) and exc.code in REFUSED_FOR_GOOD:
                self._refusals[address] = exc
            else:
                self._refusals.pop(address, None)
            self.outages.failed("heartbeat", address, exc)
            return exc
        self._refusals.pop(address, None)
        self.outages.worked("heartbeat", address)
        self._note_remark(address, remark)
        return None

    def _note_remark(self, address: str, remark: str | None) -> None:
        """Log what a broker said about this client's groups; the same again only after REMARK_REPEAT_S."""
        if remark is None:
            self._remarks.pop(address, None)
            return
        told, at = self._remarks.get(address, ("", 0.0))
        now = time.monotonic()
        if remark != told or now - at >= REMARK_REPEAT_S:
            self._remarks[address] = remark, now
            logger.warning(
                "broker warns of a group (address=%s): %s",
                address,
                remark,
                extra={"event": "broker_remark", "address": address, "remark": remark},
            )

    def _addresses(self) -> list[str]:
        return self.routes.brokers() if self._heartbeat_slaves else self.routes.masters()

    async def _refresh_routes(self) -> None:
        await wait_for_event(self._routes_wanted, REFRESH_S)
        self._routes_wanted.clear()
        await every(REFRESH_S - LOOK_AGAIN_S, self._look_at_routes, self.outages, wake=self._routes_wanted)

    async def _look_at_routes(self) -> None:
        if await self.routes.refresh():
            self.when_routes_changed()
        self.meet_brokers()
        await asyncio.sleep(LOOK_AGAIN_S)  # name servers that know different brokers would have all asked again
