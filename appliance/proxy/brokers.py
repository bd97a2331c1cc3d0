"""The way to the brokers: for each account one session, with its connections, routes and heartbeats.

What a client asks for is asked with its account's key, so brokers refuse it what they would refuse the account, and
count its cost limits. Without accounts there is one session for all.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Mapping

from appliance.acl.account import Account
from appliance.acl.account_book import AccountBook
from appliance.proxy.clients import ClientBook
from appliance.proxy.reporting import report_of
from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.connection.routes import TopicRoute
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.produce.sender import Sender
from gantrymq.errors import ConnectError
from gantrymq.message.topic_attributes import MESSAGE_TYPE
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.bodies import HeartbeatData, ProducerData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

KNOWN_S = 30.0  # how long what a broker said of a topic or group is used
KNOWN_MAX = 10_000
SENDERS_MAX = 10_000
WAITING_MAX = 10_000  # receives at one broker
SEND_RETRIES = 2  # clients try again, too
TELL_SOON_S = 0.5

Asked = Callable[["BrokerSession", str, RemotingCommand], Awaitable[RemotingCommand | None]]


class BrokerSession:
    """One account's way to the brokers. Brokers are told of its clients, and may ask about them: such a question goes
    to `asked`, by its code. endpoint: says where the proxy listens."""

    def __init__(
        self,
        options: ClientOptions,
        account: Account | None,
        clients: ClientBook,
        endpoint: Callable[[], str],
        asked: Mapping[int, Asked],
    ) -> None:
        self.access_key = account.access_key if account is not None else ""
        self.account = account
        self._clients = clients
        self._endpoint = endpoint
        self._is_telling = False
        self.client = ClientSession(options, heartbeat=self._heartbeat)
        # Receives wait at brokers: on connections of their own, where no send waits for room behind them.
        waiting = RemotingClient(credentials=options.credentials, tls=options.tls, in_flight_max=WAITING_MAX)
        self.pops = BrokerCalls(waiting)
        self.client.answer_requests({code: functools.partial(handler, self) for code, handler in asked.items()})
        self._told: set[str] = set()
        self._senders: dict[str, Sender] = {}
        self._known: dict[tuple[str, str, str], tuple[float, object]] = {}

    def open(self) -> None:
        self.client.open()

    async def close(self) -> None:
        await self.pops.remoting.close()
        await self.client.close()

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        self._told = self._clients.published(self.access_key)
        producers = [ProducerData(topic) for topic in sorted(self._told)]
        report = report_of(self._endpoint(), self._clients.of_account(self.access_key), self.account)
        return HeartbeatData(client_id, producer_data_set=producers, proxy=report)

    async def tell_brokers(self) -> None:
        """Have brokers know of topics that its clients publish since now, so that they can ask. Each 30 s they are told
        anyway."""
        if not self._told.issuperset(self._clients.published(self.access_key)):
            await self.client.send_heartbeats()

    def tell_soon(self) -> None:
        """Have brokers told of clients that came or went, once for all that come in a moment."""
        if not self._is_telling:
            self._is_telling = True
            self.client.background.start(self._tell(), "tell brokers of clients")

    async def _tell(self) -> None:
        await asyncio.sleep(TELL_SOON_S)
        self._is_telling = False
        await self.client.send_heartbeats()

    # -- what is known of topics and groups ---------------------------------------------------------------------------

    async def route(self, topic: str) -> TopicRoute:
        """The topic's route. RouteNotFound: RocketMQ 5 clients don't make topics by their first message."""
        route = await self.client.routes.to_read(topic)
        self.client.meet_brokers()
        return route

    def address(self, broker_name: str) -> str:
        """Where a broker's master is. ConnectError when it has none now."""
        address = self.client.routes.address(broker_name)
        if address is None:
            raise ConnectError(broker_name, "this broker has no master now")
        return address

    def broker_at(self, address: str) -> str | None:
        """The name of the broker whose master is there."""
        for route in self.client.routes.known.values():
            for name, addresses in route.addresses.items():
                if addresses.get(0) == address:
                    return name
        return None

    async def topic_attributes(self, topic: str) -> Mapping[str, str]:
        """What is said of the topic beside its queues: RocketMQ 5's message.type and the like; {} when nothing is."""
        route = await self.route(topic)
        config = await self._ask(
            "topic", topic, route, RequestCode.GET_TOPIC_CONFIG, {"topic": topic}, TopicConfig.from_json
        )
        return (config.attributes if isinstance(config, TopicConfig) else None) or {}

    async def group(self, group: str, topic: str) -> SubscriptionGroupConfig:
        """A group's settings at a broker of the topic; the defaults for a group that is not there yet."""
        route = await self.route(topic)
        found = await self._ask(
            "group",
            group,
            route,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG,
            {"group": group},
            SubscriptionGroupConfig.from_json,
        )
        return found if isinstance(found, SubscriptionGroupConfig) else SubscriptionGroupConfig(group)

    async def is_ordered(self, group: str, topic: str) -> bool:
        """Whether the group gets the topic's messages in order: what its settings say (RocketMQ:
        consumeMessageOrderly), and if they don't, what the topic's type means."""
        told = (await self.group(group, topic)).consume_message_orderly
        return (await self.topic_attributes(topic)).get(MESSAGE_TYPE) == "FIFO" if told is None else told

    async def _ask(
        self,
        what: str,
        name: str,
        route: TopicRoute,
        code: RequestCode,
        fields: dict[str, str],
        read: Callable[[bytes], object],
    ) -> object:
        masters = [addresses[0] for _, addresses in sorted(route.addresses.items()) if 0 in addresses]
        if not masters:
            raise ConnectError(name, "no broker of it has a master now")
        key = what, name, masters[0]
        at, known = self._known.get(key, (0.0, None))
        if at and time.monotonic() - at < KNOWN_S:
            return known
        absent = (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, ResponseCode.TOPIC_NOT_EXIST)
        unbuilt = (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, ResponseCode.SYSTEM_ERROR)  # an older broker's
        answer = await self.client.calls.call(
            masters[0], code, fields, accept=(ResponseCode.SUCCESS, *absent, *unbuilt)
        )
        found = read(answer.body) if answer.code == ResponseCode.SUCCESS else None
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key] = time.monotonic(), found
        return found

    def sender(self, topic: str) -> Sender:
        """Sends to the topic, under the producer group that clients of RocketMQ 5 have: the topic's name."""
        sender = self._senders.get(topic)
        if sender is None:
            if len(self._senders) >= SENDERS_MAX:
                self._senders.clear()
            sender = self._senders[topic] = Sender(self.client, topic, retries=SEND_RETRIES)
        return sender


class Brokers:
    """All sessions."""

    def __init__(
        self,
        name_servers: str,
        tls: TlsConfig | None,
        clients: ClientBook,
        endpoint: Callable[[], str],
        asked: Mapping[int, Asked],
        accounts: AccountBook | None,
    ) -> None:
        self._accounts = accounts
        self._name_servers = name_servers
        self._tls = tls
        self._clients = clients
        self._endpoint = endpoint
        self._asked = asked
        clients.changed = self._clients_changed
        self._sessions: dict[str, BrokerSession] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def session(self, account: Account | None) -> BrokerSession:
        """The account's session; a new one when its key has changed."""
        access_key = account.access_key if account is not None else ""
        session = self._sessions.get(access_key)
        if session is not None and account is not None and not _is_same(session.account, account):
            self._end(session)
            session = None
        if session is None:
            self._end_deleted()
            credentials = None if account is None else Credentials.of_key(access_key, account.key)
            options = ClientOptions(name_servers=self._name_servers, credentials=credentials, tls=self._tls)
            session = BrokerSession(options, account, self._clients, self._endpoint, self._asked)
            session.open()
            self._sessions[access_key] = session
        session.account = account  # its permissions may be others now
        return session

    def __len__(self) -> int:
        return len(self._sessions)

    def _end(self, session: BrokerSession) -> None:
        del self._sessions[session.access_key]
        task = asyncio.get_running_loop().create_task(session.close(), name=f"close session of {session.access_key}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _end_deleted(self) -> None:
        """End the sessions of accounts that are no longer there: brokers would refuse all they send.

        Not at once: while an editor writes a file, its accounts are missing for a moment, and their deliveries go on.
        """
        if self._accounts is not None:
            for access_key in self._sessions.keys() - self._accounts.current.by_key.keys():
                if not self._accounts.was_deleted_elsewhere(access_key):
                    self._end(self._sessions[access_key])

    def _clients_changed(self, access_key: str) -> None:
        self._end_deleted()
        session = self._sessions.get(access_key)
        if session is not None and session.client.is_open:
            session.tell_soon()

    async def close(self) -> None:
        await asyncio.gather(*self._closing, *(session.close() for session in self._sessions.values()))


def _is_same(one: Account | None, other: Account) -> bool:
    return one is not None and one.key.blocks == other.key.blocks
