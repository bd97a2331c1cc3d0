"""BrokerCluster: a name server and one or two brokers as processes, plain or with TLS, open or asking for accounts."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from appliance.bench.peer import Peer
from gantrymq import AdminClient, Credentials, SyncAdminClient
from gantrymq.errors import GantryError
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.certificates import authority, trusting
from tests.harness import LocalCluster
from tests.peers.fixtures import PATIENT, make_apache_peer
from tests.waiting import WITHIN_S

PEER = os.environ.get("GANTRY_INTEROP_PEER", "gantry")
NAMES = ("a", "b")
ADMIN = Credentials("adminKey1", "adminSecret1")
USER = Credentials("clientKey1", "clientSecret1")
QUEUES = 4  # of a topic, on each broker
START_S = WITHIN_S

# The client's account may do what clients do, and nothing of an administrator's. Traces are read by name only.
PLAIN_ACL = f"""\
accounts:
- {{accessKey: {ADMIN.access_key}, secretKey: {ADMIN.secret_key}, admin: true}}
- accessKey: {USER.access_key}
  secretKey: {USER.secret_key}
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: PUB|SUB
  topicPerms: ["RMQ_SYS_TRACE_TOPIC=PUB|SUB"]
"""

# Short waits, and no start of a queue in memory: a group without offsets then begins where it asks to (code 14).
FLOW_PROPERTIES = {
    "messageDelayLevel": "1s 1s 1s 1s 1s 1s",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
    "accessMessageInMemoryMaxRatio": "0",
}


class BrokerCluster:
    """`with BrokerCluster(folder, brokers=2, tls=True, acl=True) as cluster`: brokers "a" and "b" of one cluster.

    With TLS the ports take nothing else; with accounts clients sign as USER and administrators as ADMIN.
    """

    def __init__(
        self,
        home: Path,
        *,
        brokers: int = 2,
        tls: bool = False,
        acl: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.names = NAMES[:brokers]
        self.tls = trusting() if tls else None
        self.has_accounts = acl
        self._home = home
        settings = {**PATIENT, **FLOW_PROPERTIES, **(properties or {}), **(_tls_properties() if tls else {})}
        self.peers = {name: self._member(name, settings) for name in self.names}

    # -- where and who ------------------------------------------------------------------------------------------------

    @property
    def namesrv_address(self) -> str:
        return self._first.namesrv_address

    @property
    def addresses(self) -> dict[str, str]:
        """Broker name to address."""
        return {name: peer.broker_address for name, peer in self.peers.items()}

    @property
    def account(self) -> Credentials | None:
        return USER if self.has_accounts else None

    @property
    def client_options(self) -> dict[str, Any]:
        """What our clients need beside the name server's address."""
        return {"tls": self.tls, "credentials": self.account}

    @property
    def java_properties(self) -> dict[str, object]:
        """-D options of a Java client (org.apache.rocketmq.remoting.netty.TlsSystemConfig)."""
        if self.tls is None:
            return {}
        trust = {"tls.client.authServer": "true", "tls.client.trustCertPath": authority() / "ca.pem"}
        return {"tls.enable": "true", "tls.test.mode.enable": "false", **trust}

    def admin(self) -> AdminClient:
        return AdminClient(self.namesrv_address, tls=self.tls, credentials=self._administrator)

    @property
    def _administrator(self) -> Credentials | None:
        return ADMIN if self.has_accounts else None

    def create_topics(self, *topics: str, queues: int = QUEUES) -> None:
        """Make each topic at every broker."""
        with SyncAdminClient(self.namesrv_address, tls=self.tls, credentials=self._administrator) as admin:
            for topic in topics:
                admin.topics.create(TopicConfig(topic, queues, queues))

    # -- life ---------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            for peer in self.peers.values():
                if peer is self._first:
                    peer.launch()
                else:
                    peer.share_name_server(self._first)
                    peer.launch_broker()
            self.wait_registered(self.names)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        for peer in reversed(self.peers.values()):
            peer.stop()

    def wait_registered(self, names: tuple[str, ...]) -> None:
        """Until the name server knows these brokers and no other."""

        async def ask() -> object:
            async with self.admin() as admin:
                try:
                    known = (await admin.cluster.info()).broker_addr_table
                    for name in names:  # a broker that answers this has made its own topics
                        if name in known:
                            await admin.topics.configs_at(self.addresses[name])
                    return set(known)
                except GantryError as exc:
                    return exc

        deadline = time.monotonic() + START_S
        while (found := asyncio.run(ask())) != set(names):
            outputs = [peer.broker.last_output(500) for peer in self.peers.values() if peer._broker is not None]
            assert time.monotonic() < deadline, f"{found} instead of {names}: {outputs}"
            time.sleep(0.05)

    @property
    def _first(self) -> Peer:
        return self.peers[self.names[0]]

    def _member(self, name: str, properties: Mapping[str, str]) -> Peer:
        home = self._home / name
        if self.has_accounts:
            (home / "conf" / "acl").mkdir(parents=True)
            (home / "conf" / "plain_acl.yml").write_text(PLAIN_ACL)
            properties = {**properties, "aclEnable": "true"}
        if PEER == "apache":
            member: Peer = make_apache_peer(home, heap="512m", broker_properties=properties)
        else:
            member = _OurMember(home, broker_properties={**properties, "rocketmqHome": str(home)})
        member.broker_name = name
        return member


class _OurMember(LocalCluster):
    """Its name server has the broker's TLS settings, and tells the layout of ordered topics."""

    def namesrv_properties(self) -> dict[str, str]:
        tls = {key: value for key, value in self._extra_properties.items() if key.startswith("tls.")}
        return {**super().namesrv_properties(), "orderMessageEnable": "true", **tls}


def _tls_properties() -> dict[str, str]:
    folder = authority()
    return {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(folder / "server.pem"),
        "tls.server.keyPath": str(folder / "server.key"),
        "tls.client.trustCertPath": str(folder / "ca.pem"),
    }
