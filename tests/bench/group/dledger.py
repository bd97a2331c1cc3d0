"""Three of Apache RocketMQ's brokers with DLedger, as its conf/dledger has them, on one machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from appliance.bench import rpc
from appliance.bench.apache_peer import ApachePeer
from appliance.bench.processes import free_ports
from gantrymq.errors import GantryError
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.codes import RequestCode
from tests.bench.group.threes import NAME, OfProcesses, Three
from tests.waiting import wait_until

HEAP = "512m"
# RocketMQ's broker-n0.conf has the threads. Its default of 200 ms refuses sends of a machine that others use, too.
KNOWN = {"sendMessageThreadPoolNums": "16", "waitTimeMillsInSendQueue": "20000", "enableDLegerCommitLog": "true"}


class DLedgerMember(ApachePeer):
    """One of three. first: the one whose name server they share; None: this one."""

    def __init__(self, home: Path, number: int, ports: Sequence[int], first: DLedgerMember | None) -> None:
        peers = ";".join(f"n{each}-127.0.0.1:{port}" for each, port in enumerate(ports))
        own = {"dLegerGroup": NAME, "dLegerPeers": peers, "dLegerSelfId": f"n{number}"}
        super().__init__(home, heap=HEAP, broker_properties=KNOWN | own)
        self.broker_name = NAME
        self._first = first
        home.mkdir(parents=True)

    @property
    def namesrv_address(self) -> str:
        return super().namesrv_address if self._first is None else self._first.namesrv_address


class DLedger(OfProcesses):
    """The leader is the master. A message is acknowledged once two of three have it."""

    def settled(self) -> str:
        found: list[str] = []

        def is_settled() -> bool:
            try:
                body = rpc.ask(self.name_server, RequestCode.GET_BROKER_CLUSTER_INFO).body
                known = ClusterInfo.from_json(body).broker_addr_table[NAME].broker_addrs
                found[:] = [known[0]]
                return len(known) == 3 and len({rpc.log_end(each) for each in self.addresses}) == 1
            except (GantryError, KeyError):  # no leader yet, or a broker in its first second
                return False

        wait_until(is_settled)
        return found[0]

    def new_topic(self, name: str) -> str:
        """Followers ask for topics each 10 s, and one of them could become the leader before it has this one."""
        super().new_topic(name)
        for address in self.addresses:
            wait_until(lambda address=address: name.encode() in _topics_at(address))  # type: ignore[misc]
        return name


def _topics_at(address: str) -> bytes:
    return rpc.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG).body


@contextlib.contextmanager
def dledger(folder: Path) -> Iterator[Three]:
    ports = [free_ports() for _ in range(3)]
    first = DLedgerMember(folder / "n0", 0, ports, None)
    members = [first, *(DLedgerMember(folder / f"n{number}", number, ports, first) for number in (1, 2))]
    with contextlib.ExitStack() as stack:
        for each in members:
            stack.callback(each.stop)
        first.start_namesrv()
        for each in members:
            each.launch_broker()  # one alone has no leader to register
        three = DLedger(members)
        three.settled()
        yield three
