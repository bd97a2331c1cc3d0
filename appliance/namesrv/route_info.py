"""RouteInfoManager: the name server's five tables, and what registrations, expiry and tools do to them.

No I/O, no clock: time is an argument (seconds, any origin), a connection is an opaque token. Nothing is persistent;
after a restart the next registration of each broker fills the tables again.

Three deliberate differences from RocketMQ 4.9.4: a registration that brings topics the tables don't know adds them even
when its data version is unchanged (there, an incremental registration right after a name server's start hides all other
topics); unregistering only removes an id that still has the address which leaves; and of two masters that both tell
their epoch, the one of the earlier epoch is refused while the other is registered (there, the last one counts).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from appliance.errors import BrokerError
from appliance.namesrv.epoch_book import EpochBook, MasterEpoch
from gantrymq.remoting.admin_bodies import DataVersion, TopicConfig
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE, BrokerData, ClusterInfo, QueueData, TopicRouteData
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.registration import LaterEpoch

MASTER_ID = 0
BROKERS_MAX = 4096  # addresses at once
ROWS_MAX = 4_000_000  # topics of all brokers together
TOPICS_A_SLICE = 256  # looked at before others have a turn: half a millisecond

# bits of topicSysFlag (RocketMQ: TopicSysFlag)
FLAG_UNIT = 1
FLAG_UNIT_SUB = 2


class BrokerIdentity(NamedTuple):
    """Who registers or leaves. address: "ip:port"; broker_id 0 is the master."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str


@dataclass(slots=True)
class BrokerLive:
    """The last sign of life of one broker address."""

    last_update_s: float
    data_version: DataVersion
    connection: Hashable
    ha_address: str
    digest: bytes = b""  # of its last registration; none when topics may be missing that it named
    epoch: int = 0  # a master's, of GantryMQ; 0: it told none


class MasterAddresses(NamedTuple):
    """What a slave learns by registering; both empty for a master, or while no master lives."""

    master_address: str = ""
    ha_address: str = ""


class RouteInfoManager:
    """Topics, brokers, clusters and liveness."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, QueueData]] = {}  # topic -> broker name -> queues
        self.row_count = 0  # of all topics
        self._brokers: dict[str, BrokerData] = {}
        self._clusters: dict[str, dict[str, None]] = {}  # cluster -> broker names, in order of arrival
        self._live: dict[str, BrokerLive] = {}  # by broker address
        self._filter_servers: dict[str, list[str]] = {}  # by broker address
        self.epochs = EpochBook()

    # -- brokers come and go ------------------------------------------------------------------------------------------

    def registering(
        self,
        broker: BrokerIdentity,
        *,
        ha_address: str,
        topics: Mapping[str, TopicConfig],
        data_version: DataVersion,
        filter_servers: list[str],
        connection: Hashable,
        now_s: float,
        digest: bytes = b"",
        epoch: int = 0,
        epoch_id: str = "",
    ) -> Generator[None, None, MasterAddresses]:
        """Take what a broker says about itself. Rows are added or replaced, never removed, and only by a master:
        TOPICS_A_SLICE at a time. The broker is there at once, its rows come; if it goes, they end.

        digest: of all that the broker said, for `is_known`. epoch, epoch_id: a master's, 0 and "" when it told none.
        Raises BrokerError for a master whose epoch is over, or was begun by another one, too.
        """
        rows: list[tuple[str, QueueData]] = []
        for number, (name, topic) in enumerate(topics.items(), 1):
            rows.append((name, _queue_data(broker.broker_name, topic)))  # may raise: nothing changed yet
            if not number % TOPICS_A_SLICE:
                yield
        self._refuse_earlier_epoch(broker, epoch)
        if broker.broker_id == MASTER_ID:
            self._take_epoch(broker, MasterEpoch(epoch, epoch_id, broker.address))
        is_new = self._put_address(broker)
        known = self._live.get(broker.address)
        live = self._live[broker.address] = BrokerLive(now_s, data_version, connection, ha_address, digest, epoch)
        self._put_filter_servers(broker.address, filter_servers)
        if broker.broker_id != MASTER_ID:
            return self._master_of(broker.broker_name)
        changed = is_new or known is None or known.data_version != data_version
        for start in range(0, len(rows), TOPICS_A_SLICE):
            self._put_rows(rows[start : start + TOPICS_A_SLICE], replace_known=changed)
            yield
            if self._live.get(broker.address) is not live:
                break
        return MasterAddresses()

    def check_room(self, broker: BrokerIdentity, topics: Iterable[str]) -> None:
        """Raise BrokerError SYSTEM_BUSY when the tables would take too much with this broker and its topics."""
        if broker.address not in self._live and len(self._live) >= BROKERS_MAX:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, f"{BROKERS_MAX} brokers are registered already")
        name, names = broker.broker_name, list(topics)
        if self.row_count + len(names) > ROWS_MAX:
            new = sum(name not in self._topics.get(topic, ()) for topic in names)
            if self.row_count + new > ROWS_MAX:
                raise BrokerError(ResponseCode.SYSTEM_BUSY, f"all brokers together have {ROWS_MAX} topics already")

    def is_known(self, broker: BrokerIdentity, digest: bytes, connection: Hashable, now_s: float) -> bool:
        """Whether a master has said exactly this before, and nothing of it was forgotten. A sign of life, then."""
        live = self._live.get(broker.address)
        if live is None or live.digest != digest or live.connection != connection or broker.broker_id != MASTER_ID:
            return False
        data = self._brokers.get(broker.broker_name)
        if data is None or data.master_address != broker.address or self.epochs.has_rivals(broker.broker_name):
            return False  # another one has its place by now, or claims it
        live.last_update_s = now_s
        return True

    def unregister_broker(self, broker: BrokerIdentity, now_s: float | None = None) -> None:
        """A broker says good-bye. Unknown ones are ignored. now_s: keep in mind when a master did."""
        self._note_end(broker.address, now_s)
        self._live.pop(broker.address, None)
        self._filter_servers.pop(broker.address, None)
        self._remove_address(broker.broker_name, broker.address)

    def connection_closed(self, connection: Hashable, now_s: float | None = None) -> list[str]:
        """Remove every broker that registered on the connection; returns their addresses. now_s: as above."""
        addresses = [address for address, live in self._live.items() if live.connection == connection]
        for address in addresses:
            self._note_end(address, now_s)
            self._remove_everywhere(address)
        return addresses

    def remove_expired(self, now_s: float, silence_s_max: float) -> list[tuple[str, Hashable]]:
        """Remove brokers that were silent for longer; returns (address, connection), for the caller to close."""
        expired = [
            (address, live.connection)
            for address, live in self._live.items()
            if now_s - live.last_update_s > silence_s_max
        ]
        for address, _ in expired:
            self._remove_everywhere(address)
        return expired

    def query_data_version(
        self, broker: BrokerIdentity, data_version: DataVersion, now_s: float
    ) -> tuple[bool, DataVersion | None]:
        """(whether the broker must register, the version known here). "Unchanged" counts as a sign of life."""
        live = self._live.get(broker.address)
        if live is None:
            return True, None
        changed = live.data_version != data_version
        if not changed:
            live.last_update_s = now_s
        return changed, live.data_version

    # -- what clients and tools ask -----------------------------------------------------------------------------------

    def pickup_topic_route(self, topic: str) -> TopicRouteData | None:
        """The topic's route, or None unless at least one broker that holds it is known."""
        rows = self._topics.get(topic)
        if not rows:
            return None
        brokers = [self._brokers[name] for name in rows if name in self._brokers]
        if not brokers:
            return None
        addresses = (address for broker in brokers for address in broker.broker_addrs.values())
        filter_servers = {
            address: self._filter_servers[address] for address in addresses if address in self._filter_servers
        }
        return TopicRouteData(list(map(_clone, brokers)), list(rows.values()), filter_servers)

    def cluster_info(self) -> ClusterInfo:
        return ClusterInfo(
            {name: _clone(broker) for name, broker in self._brokers.items()},
            {cluster: list(names) for cluster, names in self._clusters.items()},
        )

    def topics(self) -> list[str]:
        return list(self._topics)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics with queues on any broker of the cluster; empty for an unknown one."""
        names = self._clusters.get(cluster, {}).keys()
        return [topic for topic, rows in self._topics.items() if not names.isdisjoint(rows)]

    def system_topics(self) -> tuple[list[str], str | None]:
        """(names of clusters and brokers, the address of some broker that knows the other system topics)."""
        names = list(self._clusters) + list(self._brokers)
        addresses = (broker.any_address() for broker in self._brokers.values())
        return names, next(addresses, None)

    def unit_topics(self, *, has: int, has_not: int = 0) -> list[str]:
        """Topics whose topicSysFlag, as one broker has it, holds all bits of `has` and none of `has_not`."""
        return [
            topic
            for topic, rows in self._topics.items()
            for row in list(rows.values())[:1]  # RocketMQ looks at one broker only
            if row.topic_sys_flag & has == has and not row.topic_sys_flag & has_not
        ]

    # -- what tools change --------------------------------------------------------------------------------------------

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget the topic, everywhere or on one cluster's brokers. A broker that still holds it may bring it back."""
        for live in self._live.values():
            live.digest = b""
        rows = self._topics.get(topic, {})
        for name in list(rows) if cluster is None else list(self._clusters.get(cluster, {})):
            self.row_count -= rows.pop(name, None) is not None
        if not rows:
            self._topics.pop(topic, None)

    def wiping_write_perm(self, broker_name: str) -> Generator[None, None, int]:
        """Stop new messages for the broker until its next changed registration; returns the number of its topics."""
        return self._setting_perms(broker_name, lambda perm: perm & ~PERM_WRITE)

    def adding_write_perm(self, broker_name: str) -> Generator[None, None, int]:
        """Open all topics of the broker for reading and writing; returns the number of its topics."""
        return self._setting_perms(broker_name, lambda perm: PERM_READ | PERM_WRITE)

    def superseded_by(self, broker: BrokerIdentity, epoch: int) -> Hashable | None:
        """The connection of the master that this registration replaces by a later epoch's; None without one."""
        data = self._brokers.get(broker.broker_name)
        if broker.broker_id != MASTER_ID or data is None or data.master_address == broker.address:
            return None
        live = self._live.get(data.master_address or "")
        return live.connection if live is not None and 0 < live.epoch < epoch else None

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _refuse_earlier_epoch(self, broker: BrokerIdentity, epoch: int) -> None:
        data = self._brokers.get(broker.broker_name)
        if broker.broker_id != MASTER_ID or not epoch or data is None:
            return
        live = self._live.get(data.master_address or "")
        if live is not None and data.master_address != broker.address and epoch < live.epoch:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR,
                f"epoch {epoch} of {broker.broker_name} is over: {data.master_address} is its master, in epoch "
                f"{live.epoch}",
                LaterEpoch(live.epoch, data.master_address or "").to_fields(),
            )

    def _take_epoch(self, broker: BrokerIdentity, epoch: MasterEpoch) -> None:
        rival = self.epochs.rival_of(broker.broker_name, epoch, self._live.__contains__)
        if rival is not None:
            raise BrokerError(
                ResponseCode.SYSTEM_ERROR,
                f"{broker.broker_name} has two masters: {epoch.text} and {rival.text}. Neither is registered until "
                "`gantry admin settle` has chosen one",
                LaterEpoch(rival.number, rival.address, rival.id).to_fields(),
            )
        self.epochs.registered(broker.broker_name, epoch if epoch.number else None)

    def _note_end(self, address: str, now_s: float | None) -> None:
        for name, data in self._brokers.items() if now_s is not None else ():
            if now_s is not None and data.master_address == address:
                self.epochs.ended(name, now_s)

    def _put_address(self, broker: BrokerIdentity) -> bool:
        """Enter cluster, name and address; returns whether the id was unknown."""
        self._clusters.setdefault(broker.cluster, {})[broker.broker_name] = None
        data = self._brokers.get(broker.broker_name)
        if data is None:
            data = self._brokers[broker.broker_name] = BrokerData(broker.cluster, broker.broker_name)
        if data.broker_addrs.get(broker.broker_id) == broker.address:
            return False
        # a slave that became master: its address must not stand under both ids
        for broker_id in [key for key, address in data.broker_addrs.items() if address == broker.address]:
            del data.broker_addrs[broker_id]
        is_new = broker.broker_id not in data.broker_addrs
        data.broker_addrs[broker.broker_id] = broker.address
        return is_new

    def _put_rows(self, rows: Iterable[tuple[str, QueueData]], *, replace_known: bool) -> None:
        for topic, row in rows:
            known = self._topics.setdefault(topic, {})
            before = known.get(row.broker_name)
            if before is None or (replace_known and before != row):
                known[row.broker_name] = row
                self.row_count += before is None

    def _put_filter_servers(self, address: str, filter_servers: list[str]) -> None:
        if filter_servers:
            self._filter_servers[address] = filter_servers
        else:
            self._filter_servers.pop(address, None)

    def _master_of(self, broker_name: str) -> MasterAddresses:
        address = self._brokers[broker_name].master_address
        live = self._live.get(address) if address else None
        return MasterAddresses(address, live.ha_address) if address and live else MasterAddresses()

    def _remove_everywhere(self, address: str) -> None:
        self._live.pop(address, None)
        self._filter_servers.pop(address, None)
        for name in [name for name, data in self._brokers.items() if address in data.broker_addrs.values()]:
            self._remove_address(name, address)

    def _remove_address(self, broker_name: str, address: str) -> None:
        """Take the address from its name; with the last one go the name, its rows, and what that leaves empty."""
        data = self._brokers.get(broker_name)
        if data is None:
            return
        for broker_id in [key for key, known in data.broker_addrs.items() if known == address]:
            del data.broker_addrs[broker_id]
        if data.broker_addrs:
            return
        del self._brokers[broker_name]
        for cluster in [cluster for cluster, names in self._clusters.items() if broker_name in names]:
            del self._clusters[cluster][broker_name]
            if not self._clusters[cluster]:
                del self._clusters[cluster]
        for topic in [topic for topic, rows in self._topics.items() if broker_name in rows]:
            del self._topics[topic][broker_name]
            self.row_count -= 1
            if not self._topics[topic]:
                del self._topics[topic]

    def _setting_perms(self, broker_name: str, change: Callable[[int], int]) -> Generator[None, None, int]:
        """Change the broker's rows, a slice of the topics at a time."""
        count = 0
        for number, rows in enumerate(list(self._topics.values()), 1):
            row = rows.get(broker_name)
            if row is not None:
                rows[broker_name] = replace(row, perm=change(row.perm))
                count += 1
            if not number % TOPICS_A_SLICE:
                yield
        return count


def _queue_data(broker_name: str, topic: TopicConfig) -> QueueData:
    """A row of the topic table. The numbers come from a peer: ValueError or TypeError when they are none."""
    return QueueData(
        broker_name,
        int(topic.read_queue_nums),
        int(topic.write_queue_nums),
        int(topic.perm),
        int(topic.topic_sys_flag),
    )


def _clone(broker: BrokerData) -> BrokerData:
    return BrokerData(broker.cluster, broker.broker_name, dict(broker.broker_addrs))
