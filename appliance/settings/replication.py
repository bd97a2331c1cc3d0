"""Settings of replication: which role a broker has, and how master and slave talk (RocketMQ: MessageStoreConfig)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from appliance.settings.tls import DISABLED, ENFORCING, PERMISSIVE
from gantrymq.errors import ConfigError
from store.base.config import INT_MAX, LONG_MAX, setting

MASTER_ROLES = ("ASYNC_MASTER", "SYNC_MASTER")
ROLES = (*MASTER_ROLES, "SLAVE")
HA_ADDRESS_CHARS_MIN = 6  # RocketMQ takes a shorter haMasterAddress for none


@dataclass(frozen=True, kw_only=True)
class ReplicationSettings:
    """One broker's part in replication."""

    broker_id: int = setting(0, "brokerId", "0 is the master, higher ones are its slaves")
    broker_role: str = setting(
        "ASYNC_MASTER",
        "brokerRole",
        "ASYNC_MASTER, SYNC_MASTER: sends are answered when a slave has them, or SLAVE: copies its master's log",
    )
    ha_advertised_host: str = setting("", "brokerIP2", "address given to slaves; empty: brokerIP1")
    ha_listen_port: int = setting(0, "haListenPort", "port for slaves; 0: listenPort + 1")
    slaves_enable: bool = setting(
        False,
        "slavesEnable",
        (
            "let slaves copy the log; any program that reaches their port can read it all. Without it a "
            "SYNC_MASTER lets only slaves on its own machine do so, or those of haSlaveAddresses (not "
            "RocketMQ's)"
        ),
    )
    ha_slave_addresses: str = setting(
        "",
        "haSlaveAddresses",
        (
            "addresses and networks (10.1.0.0/16), separated by ',', from which slaves may connect; "
            "empty: any (not RocketMQ's)"
        ),
    )
    ha_tls_mode: str = setting(
        "",
        "haTlsMode",
        (
            "TLS of the port for slaves: disabled, permissive, or enforcing, which RocketMQ's slaves "
            "can't do; empty: as tls.server.mode. On a slave, enforcing rejects a master without TLS "
            "(not RocketMQ's)"
        ),
    )
    ha_accounts: bool = setting(
        False, "haAccounts", "slaves sign with an administrator's account, which RocketMQ's can't do (not RocketMQ's)"
    )
    slave_timeout_ms: int = setting(
        3000, "slaveTimeout", "longest wait of a send for a slave, with SYNC_MASTER, ms", within=(10, 600_000)
    )
    slave_fall_behind_bytes: int = setting(
        256 << 20,
        "haSlaveFallbehindMax",
        "a slave that lacks so many bytes of the log is not in sync: with SYNC_MASTER sends don't wait for it",
        within=(1, LONG_MAX),
    )
    ha_master_address: str = setting(
        "", "haMasterAddress", "a slave copies from this host:port; empty: as the name servers say"
    )
    ha_heartbeat_ms: int = setting(
        5000, "haSendHeartbeatInterval", "longest time without data between master and slave, ms", within=(100, 600_000)
    )
    ha_housekeeping_ms: int = setting(
        20_000,
        "haHousekeepingInterval",
        "time without data after which master or slave closes the connection, ms",
        within=(1000, 3_600_000),
    )
    ha_transfer_batch_bytes: int = setting(
        32_768,
        "haTransferBatchSize",
        "log bytes in one frame; eight times as many to slaves of GantryMQ",
        within=(1024, 1024 * 1024),
    )
    in_sync_lag_ms: int = setting(
        3000,
        "haMaxTimeSlaveNotCatchup",
        "a slave of GantryMQ that has not caught up for so long is no longer in sync, ms (RocketMQ 5: 15000)",
    )
    read_confirmed_only: bool = setting(
        False,
        "readConfirmedOnly",
        "consumers and look-ups see a message once all slaves that are in sync have it (not RocketMQ's)",
        live=True,
    )
    all_ack_in_sync: bool = setting(
        False,
        "allAckInSyncStateSet",
        "with SYNC_MASTER a send waits for all slaves that are in sync, not for the fastest (RocketMQ 5's)",
    )
    min_in_sync_replicas: int = setting(
        1,
        "minInSyncReplicas",
        ("with SYNC_MASTER messages are rejected while fewer brokers are in sync, the master counted (RocketMQ 5's)"),
        within=(1, 64),
    )
    etcd_endpoints: str = setting(
        "",
        "etcdEndpoints",
        (
            "http://HOST:PORT or https://HOST:PORT of etcd's members, separated by ','; the same for all "
            "brokers of a name. etcd then assigns epochs and stores the in-sync set; empty: none (not "
            "RocketMQ's)"
        ),
    )
    etcd_user: str = setting("", "etcdUser", "user of etcd; empty: it has none (not RocketMQ's)")
    etcd_password_file: str = setting(
        "", "etcdPasswordFile", "file with that user's password in its first line (not RocketMQ's)"
    )
    etcd_ca_file: str = setting(
        "", "etcdCaFile", "authorities of etcd's certificates, PEM; empty: the system's (not RocketMQ's)"
    )
    automatic_failover: bool = setting(
        False,
        "automaticFailover",
        (
            "a slave in sync becomes the master when the master is gone, and a master steps down when etcd does not "
            "confirm it within failoverLeaseSeconds; needs etcdEndpoints, SYNC_MASTER, allAckInSyncStateSet and "
            "readConfirmedOnly at all brokers of a name (not RocketMQ's)"
        ),
    )
    failover_lease_s: int = setting(
        5,
        "failoverLeaseSeconds",
        "with automaticFailover, s; the same for all brokers of a name (not RocketMQ's)",
        within=(3, 60),
    )
    broker_election_priority: int = setting(
        INT_MAX,
        "brokerElectionPriority",
        "with automaticFailover, of slaves in sync with equally long logs that with the lowest becomes the master",
        within=(0, INT_MAX),
    )
    offset_check_in_slave: bool = setting(
        False, "offsetCheckInSlave", "let a slave correct a consumer's offset that it does not have"
    )
    slave_read_enable: bool = setting(
        False, "slaveReadEnable", "suggest a slave to groups that read messages no longer in memory"
    )

    @property
    def is_slave(self) -> bool:
        return self.broker_role == "SLAVE"

    @property
    def is_sync_master(self) -> bool:
        return self.broker_role == "SYNC_MASTER"

    @property
    def has_slave_port(self) -> bool:
        """Whether slaves may come at all: RocketMQ's files say SYNC_MASTER, and know no slavesEnable."""
        return not self.is_slave and (self.slaves_enable or self.is_sync_master)

    @property
    def has_own_slaves_only(self) -> bool:
        """Whether only slaves of this machine may come, because nothing names others."""
        return self.is_sync_master and not self.slaves_enable and not self.ha_slave_addresses

    def why_no_slave(self, host: str, own_host: str) -> str:
        """Why no slave may come from this address to this one of the broker's; "" when one may."""
        networks, address = _networks(self.ha_slave_addresses), _address(host)
        if self.has_own_slaves_only and not address.is_loopback and address != _address(own_host):
            return "only slaves of the master's machine may come: set slavesEnable=true or haSlaveAddresses there"
        if networks and not any(address in network for network in networks):
            return "the slave's address is not in haSlaveAddresses of its master"
        return ""

    def check_replication(self) -> None:
        """Raise ConfigError for a role that can't be; called by __post_init__."""
        if self.broker_role not in ROLES:
            raise ConfigError(f"brokerRole={self.broker_role}: use one of {', '.join(ROLES)}")
        if self.is_slave and self.broker_id <= 0:
            raise ConfigError(f"brokerId={self.broker_id}: a slave's is 1 or more, each slave of a master has its own")
        if not self.is_slave and self.broker_id != 0:
            raise ConfigError(f"brokerId={self.broker_id}: a master's is 0; use brokerRole=SLAVE for a slave")
        if self.ha_tls_mode not in ("", DISABLED, PERMISSIVE, ENFORCING):
            raise ConfigError(f"haTlsMode={self.ha_tls_mode}: use {DISABLED}, {PERMISSIVE} or {ENFORCING}")
        if self.etcd_endpoints and not self.is_slave and not self.has_slave_port:
            raise ConfigError("etcdEndpoints is for a master with slaves: set slavesEnable=true, or leave it out")
        if self.automatic_failover and not (self.etcd_endpoints and self.all_ack_in_sync and self.read_confirmed_only):
            raise ConfigError(
                "automaticFailover needs etcdEndpoints, allAckInSyncStateSet=true and readConfirmedOnly=true"
            )
        if self.automatic_failover and not (self.is_slave or self.is_sync_master):
            raise ConfigError(
                "automaticFailover needs brokerRole=SYNC_MASTER: another master loses what it acknowledged"
            )
        _networks(self.ha_slave_addresses)
        if self.ha_master_address and not _is_address(self.ha_master_address):
            raise ConfigError(f"haMasterAddress={self.ha_master_address}: use host:port")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _networks(text: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Raise ConfigError for what is neither an address nor a network."""
    try:
        return [ipaddress.ip_network(word.strip()) for word in text.split(",") if word.strip()]
    except ValueError as exc:
        raise ConfigError(f"haSlaveAddresses={text}: {exc}") from exc


def _is_address(text: str) -> bool:
    host, separator, port = text.rpartition(":")
    return bool(host and separator and port.isdecimal() and 0 < int(port) < 65536)
