"""BrokerOuterApi: keeps this broker registered with every name server.

Each name server has a link of its own that knows whether the other side is up to date, so one that is down delays none:

    unknown   -> full registration; a failure is tried again after a second, later less often
    known     -> full registration every period (or, without forceRegister, a question whether one is needed)
    changed   -> the changed topics only; several changes in a row go out together
    lost      -> the connection closed: a restarted name server knows nothing, so back to unknown at once

All registrations wait for their answer; RocketMQ's one-way ones get lost in silence. Who has to know when a topic is
known asks `when_told`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from appliance.broker.access.access_control import outgoing_client
from appliance.broker.topics.topic_announcements import TopicAnnouncements
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.process.cooperative import in_slices
from appliance.process.json_file import member_text
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import BodyError, ClientClosed, ConnectError, GantryError, RequestTimeout, ResponseError
from gantrymq.remoting.admin_bodies import DataVersion, KVTable, TopicConfig
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE, ClusterInfo
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.connection import ClientConnection
from gantrymq.remoting.registration import TOPICS_A_PART, LaterEpoch, body_crc32, compressed_parts, plain_parts
from gantrymq.timeouts import wait_for_event

logger = logging.getLogger(__name__)

PERIOD_S_MIN, PERIOD_S_MAX = 10.0, 60.0  # RocketMQ clamps registerNameServerPeriod so
RETRY_S = 1.0
RETRIES_BEFORE_BACK_OFF = (
    30  # a name server that restarts is back within seconds; one that is down for good costs little
)
COALESCE_S = 0.02
COALESCE_AWAITED_S = 0.002  # while an answer waits for the name servers
LEAVE_TIMEOUT_S = 3.0


class NamesrvLink:
    """What we know about one name server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_registered = False  # it knows this broker, as far as we can tell
        self.needs_full = True  # the next registration must hold all topics
        self.changed: dict[str, TopicConfig] = {}  # topics it has not heard of yet
        self.telling: dict[str, TopicConfig] = {}  # those of them that are on their way
        self.failures = 0  # in a row
        self.full_due_at = 0.0  # monotonic: when everything is to be told again, however many changes were meanwhile
        self.wake = asyncio.Event()
        self.lock = asyncio.Lock()  # one registration at a time: an older one must not overtake a newer
        self.connection: ClientConnection | None = None

    def lacks(self, topic: str) -> bool:
        """Whether it is up, as far as we can tell, and has not heard of the topic yet."""
        return not self.failures and (topic in self.changed or topic in self.telling)

    def retry_delay_s(self, period_s: float) -> float:
        """How long to wait after `failures` failures in a row."""
        if self.failures <= RETRIES_BEFORE_BACK_OFF:
            return RETRY_S
        return min(RETRY_S * 2.0 ** min(self.failures - RETRIES_BEFORE_BACK_OFF, 10), period_s)


class BrokerOuterApi:
    """Registrations of one broker. address, ha_address: "host:port" of its own and of the port for slaves.

    on_registered: a slave's is called with what the answer to a registration says of its master. epoch, epoch_id: a
    master's, for name servers of GantryMQ; 0 and "" for none. RocketMQ's take no notice of it. on_later_epoch: a
    master's, called with the name server that refuses it because the epoch of another has begun.
    """

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicConfigManager,
        *,
        address: str,
        ha_address: str,
        client: RemotingClient | None = None,
        on_registered: Callable[[Mapping[str, str]], None] = lambda told: None,
        epoch: int = 0,
        epoch_id: str = "",
        on_later_epoch: Callable[[LaterEpoch, str], None] = lambda later, name_server: None,
        may_register: Callable[[], bool] = lambda: True,
    ) -> None:
        self._config = config
        self._topics = topics
        self._client = client or outgoing_client(config)
        self._identity = {
            "brokerName": config.broker_name,
            "brokerAddr": address,
            "clusterName": config.cluster_name,
            "brokerId": str(config.broker_id),
        }
        self._ha_address = ha_address
        self._epoch = {"masterEpoch": str(epoch), "masterEpochId": epoch_id} if epoch else {}
        self._on_registered = on_registered
        self._on_later_epoch = on_later_epoch
        self._may_register = may_register
        self._links = [NamesrvLink(address) for address in split_addresses(config.namesrv_addresses)]
        self.period_s = min(max(config.register_period_ms / 1000, PERIOD_S_MIN), PERIOD_S_MAX)
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by address: what keeps that link up to date
        self._group: asyncio.TaskGroup | None = None  # while running
        self._watchers: set[asyncio.Task[None]] = set()
        self._is_leaving = False
        self._announcements = TopicAnnouncements()
        self._body: tuple[tuple[int, int, int], bytes] | None = None  # key and bytes of the last full registration

    # -- what others call ---------------------------------------------------------------------------------------------

    def topic_changed(self, topic: TopicConfig | None) -> None:
        """A topic was created or changed (None: deleted): have the name servers told soon. Costs next to nothing."""
        if topic is None:
            return  # registrations never remove topics; the next full one brings the new data version
        for link in self._links:
            link.changed[topic.topic_name] = topic
            if not link.failures:  # a name server that is down is tried again in its own time
                link.wake.set()

    def when_told(self, topic: str, act: Callable[[], None]) -> None:
        """Act when all name servers that are up know the topic as it is: mostly at once, after a second at most."""
        self._announcements.wait(topic, self._lacking(topic), act)

    def is_untold(self, topic: str) -> bool:
        """Whether an act about this topic would have to wait."""
        return bool(self._announcements.awaited(topic, self._lacking(topic)))

    def _lacking(self, topic: str) -> list[str]:
        return [link.address for link in self._links if link.lacks(topic)]

    async def register_all(self, *, topic: TopicConfig | None = None) -> int:
        """Bring the name servers up to date: all of them with the whole table, or those that are up with `topic`.

        Returns how many know this broker now; never raises for one that is down.
        """
        links = self._links
        if topic is not None:
            links = [link for link in links if link.is_registered]
            for link in links:
                link.changed[topic.topic_name] = topic
        else:
            for link in links:
                link.needs_full = True
        await asyncio.gather(*map(self._bring_up_to_date, links))
        return sum(link.is_registered for link in self._links)

    def refresh(self) -> None:
        """Have the whole table sent again soon: after a change that concerns every topic."""
        for link in self._links:
            link.needs_full = True
            link.wake.set()

    def follow(self, addresses: Sequence[str]) -> None:
        """From now on these are the name servers: register with the new ones, leave those that are no longer named."""
        gone = [link for link in self._links if link.address not in addresses]
        new = [address for address in addresses if address not in {link.address for link in self._links}]
        self._links = [link for link in self._links if link not in gone] + [NamesrvLink(address) for address in new]
        if self._group is None:
            return
        for link in gone:
            self._announcements.settle(link.address, {**link.changed, **link.telling})
            if (task := self._tasks.pop(link.address, None)) is not None:
                task.cancel()
            self._group.create_task(self._leave(link), name=f"leaving {link.address}")
        for link in self._links[len(self._links) - len(new) :]:
            self._keep(link)

    @property
    def addresses(self) -> list[str]:
        """The name servers, those that know this broker first."""
        return [link.address for link in sorted(self._links, key=lambda link: not link.is_registered)]

    @property
    def registered(self) -> tuple[int, int]:
        """(name servers that know this broker, name servers there are), as far as we can tell."""
        return sum(link.is_registered for link in self._links), len(self._links)

    async def unregister_all(self) -> None:
        """Say good-bye everywhere; from now on nothing is registered any more."""
        self._is_leaving = True
        await asyncio.gather(*map(self._leave, self._links))

    async def run(self) -> None:
        """Keep every link up to date until cancelled, then close the connections."""
        try:
            async with asyncio.TaskGroup() as self._group:
                for link in self._links:
                    self._keep(link)
                await asyncio.Event().wait()  # there may be no name server yet
        finally:
            self._group = None
            self._is_leaving = True
            for watcher in self._watchers:
                watcher.cancel()
            await self._client.close()

    # -- one link -----------------------------------------------------------------------------------------------------

    def _keep(self, link: NamesrvLink) -> None:
        assert self._group is not None
        task = self._group.create_task(self._keep_up_to_date(link), name=f"registration at {link.address}")
        self._tasks[link.address] = task

    async def _keep_up_to_date(self, link: NamesrvLink) -> None:
        while True:
            await self._bring_up_to_date(link)
            if link.changed and not (link.needs_full or self._is_leaving):
                continue  # came while the full registration was on its way
            delay_s = link.retry_delay_s(self.period_s) if link.failures else link.full_due_at - time.monotonic()
            if delay_s > 0 and await wait_for_event(link.wake, delay_s):
                await asyncio.sleep(COALESCE_AWAITED_S if self._announcements else COALESCE_S)
                continue
            link.full_due_at = time.monotonic() + self.period_s
            link.needs_full = link.needs_full or not await self._is_unchanged_there(link)

    async def _bring_up_to_date(self, link: NamesrvLink) -> None:
        """Send what the name server lacks: everything, the changed topics, or nothing."""
        async with link.lock:
            link.wake.clear()
            if self._is_leaving or not (link.needs_full or link.changed):
                return
            if not self._may_register():  # who is allowed again refreshes
                link.needs_full = True
                return
            changed = link.telling = link.changed
            link.changed = {}
            is_full, link.needs_full = link.needs_full, False  # who wants more meanwhile is heard
            try:
                await self._register(link, await (self._full_body() if is_full else self._encode(changed)))
                if is_full:
                    link.full_due_at = time.monotonic() + self.period_s
            except GantryError as exc:
                self._note_failure(link, exc)
            finally:
                link.telling = {}
                self._announcements.settle(link.address, changed)

    async def _register(self, link: NamesrvLink, body: bytes) -> None:
        """Send one registration and take over what the answer says. Raises GantryError."""
        ext_fields = (
            self._identity
            | self._epoch
            | {
                "haServerAddr": self._ha_address,
                "compressed": "true" if self._config.compressed_register else "false",
                "bodyCrc32": str(body_crc32(body)),
            }
        )
        request = RemotingCommand.request(RequestCode.REGISTER_BROKER, ext_fields, body)
        timeout_s = self._config.register_timeout_ms / 1000
        connection = await self._client.connection(link.address, request, timeout_s)
        self._watch(link, connection)
        answer = await self._client.submit(connection, request, timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            later = LaterEpoch.from_fields(answer.ext_fields) if self._epoch else None
            if later is not None:
                self._on_later_epoch(later, link.address)
            raise ResponseError(answer.code, answer.remark, address=link.address)
        self._note_success(link)
        # Of one name server: two that disagree would have us turn for ever.
        if link is next((known for known in self._links if known.is_registered), None):
            if self._config.is_slave:
                self._on_registered(answer.ext_fields)
            elif answer.body:
                self._apply_order_topics(answer.body)

    async def _is_unchanged_there(self, link: NamesrvLink) -> bool:
        """Without forceRegister: ask whether the name server has our data version. Asking counts as a sign of life."""
        if self._config.force_register or self._config.is_slave:  # whose answer says where the master is
            return False
        offered = self._topics.data_version
        request = RemotingCommand.request(RequestCode.QUERY_DATA_VERSION, dict(self._identity), offered.to_json())
        try:
            answer = await self._client.invoke(link.address, request, timeout_s=self._config.register_timeout_ms / 1000)
            if answer.code != ResponseCode.SUCCESS or answer.ext_fields.get("changed") != "false":
                return False
            return bool(answer.body) and DataVersion.from_json(answer.body) == offered
        except (ConnectError, RequestTimeout, BodyError):
            return False

    async def _leave(self, link: NamesrvLink) -> None:
        async with link.lock:  # a registration under way must not arrive after the good-bye
            if not link.is_registered:
                return
            link.is_registered = False
            request = RemotingCommand.request(RequestCode.UNREGISTER_BROKER, dict(self._identity))
            try:
                if await self._has_successor(link):
                    return
                await self._client.invoke(link.address, request, timeout_s=LEAVE_TIMEOUT_S)
            except (ConnectError, RequestTimeout, ClientClosed, BodyError) as exc:
                logger.warning(
                    "broker could not be unregistered from the name server",
                    extra={"event": "unregister_failed", "address": link.address, "why": str(exc)},
                )

    async def _has_successor(self, link: NamesrvLink) -> bool:
        """Whether another broker has this one's id there by now: RocketMQ's name servers would unregister that one."""
        if not (self._config.is_slave or self._config.has_slave_port):
            return False
        request = RemotingCommand.request(RequestCode.GET_BROKER_CLUSTER_INFO)
        answer = await self._client.invoke(link.address, request, timeout_s=LEAVE_TIMEOUT_S)
        if answer.code != ResponseCode.SUCCESS:
            return False
        data = ClusterInfo.from_json(answer.body).broker_addr_table.get(self._config.broker_name)
        known = data.broker_addrs.get(self._config.broker_id) if data is not None else None
        return known is not None and known != self._identity["brokerAddr"]

    def _watch(self, link: NamesrvLink, connection: ClientConnection) -> None:
        """Notice the end of the connection: the name server forgets this broker with it."""
        if link.connection is connection:
            return
        link.connection = connection
        watcher = asyncio.get_running_loop().create_task(self._await_loss(link, connection))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def _await_loss(self, link: NamesrvLink, connection: ClientConnection) -> None:
        with contextlib.suppress(GantryError):
            await connection.wait_lost()
        if link.connection is connection:
            link.connection = None
            link.is_registered = False
            link.needs_full = True
            link.wake.set()

    # -- bodies and answers -------------------------------------------------------------------------------------------

    async def _full_body(self) -> bytes:
        """The registration of all topics; made once per data version, for there may be thousands."""
        version = self._topics.data_version
        key = (version.timestamp, version.counter, self._config.permission)
        if self._body is None or self._body[0] != key:
            self._body = (key, await self._encode(self._topics.configs))
        return self._body[1]

    async def _encode(self, topics: Mapping[str, TopicConfig]) -> bytes:
        """The registration of these topics as they are now, made in slices."""
        configs, data_version = list(topics.values()), self._topics.data_version.to_json()
        permission = self._config.permission
        if permission != PERM_READ | PERM_WRITE:
            configs = [_limited(topic, permission) async for topic in in_slices(configs, TOPICS_A_PART)]
        if self._config.compressed_register:
            return await _joined(compressed_parts(configs, data_version))
        entries = [self._entry(topic) async for topic in in_slices(configs, TOPICS_A_PART)]
        return await _joined(plain_parts(entries, data_version))

    def _entry(self, topic: TopicConfig) -> str:
        """One member of the topic table; mostly the table has it at hand."""
        if self._topics.get(topic.topic_name) is topic:
            return self._topics.entry(topic.topic_name)
        return member_text(topic.topic_name, topic.to_json().decode())

    def _apply_order_topics(self, body: bytes) -> None:
        """Order follows the key-value table of the first name server that is up."""
        try:
            orders = KVTable.from_json(body).table
        except BodyError as exc:
            logger.warning("order topics unreadable", extra={"event": "order_topics_unreadable", "why": str(exc)})
            return
        if self._topics.apply_order_topics(orders.keys()):
            self.refresh()

    def _note_success(self, link: NamesrvLink) -> None:
        if not link.is_registered:
            logger.info("registered with name server", extra={"event": "namesrv_knows", "address": link.address})
        link.is_registered = True
        link.failures = 0

    def _note_failure(self, link: NamesrvLink, exc: GantryError) -> None:
        link.is_registered = False
        link.needs_full = True
        link.failures += 1
        if link.failures == 1:  # once per outage
            is_refusal = isinstance(exc, ResponseError)
            logger.warning(
                "name server rejects this broker"
                if is_refusal
                else "this broker can't be registered with the name server",
                extra={
                    "event": "namesrv_refuses" if is_refusal else "namesrv_unreachable",
                    "address": link.address,
                    "why": str(exc),
                },
            )


def split_addresses(text: str) -> list[str]:
    """ "host:port;host:port" as a list, each address once."""
    return list(dict.fromkeys(address.strip() for address in text.split(";") if address.strip()))


def _limited(topic: TopicConfig, permission: int) -> TopicConfig:
    """The topic as a broker that is closed for writing or reading announces it."""
    return dataclasses.replace(topic, perm=topic.perm & permission)


async def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join([part async for part in in_slices(parts, 1)])
