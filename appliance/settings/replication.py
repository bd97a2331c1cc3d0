"""Settings of replication: which role a broker has, and how master and slave talk (RocketMQ: MessageStoreConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from gantrymq.errors import ConfigError
from store.base.config import setting

ROLES = ("ASYNC_MASTER", "SLAVE")
HA_ADDRESS_CHARS_MIN = 6  # RocketMQ takes a shorter haMasterAddress for none


@dataclass(frozen=True, kw_only=True)
class ReplicationSettings:
    """One broker's part in replication."""

    broker_id: int = setting(0, rocketmq="brokerId", doc="0 is the master, higher ones are its slaves")
    broker_role: str = setting(
        "ASYNC_MASTER",
        rocketmq="brokerRole",
        doc="ASYNC_MASTER, or SLAVE: copies its master's log",
    )
    ha_advertised_host: str = setting("", rocketmq="brokerIP2", doc="address given to slaves; empty: brokerIP1")
    ha_listen_port: int = setting(0, rocketmq="haListenPort", doc="port for slaves; 0: listenPort + 1")
    slaves_enable: bool = setting(
        False,
        rocketmq="slavesEnable",
        doc="let slaves copy the log; any program that reaches their port can read it all (not RocketMQ's)",
    )
    ha_master_address: str = setting(
        "", rocketmq="haMasterAddress", doc="a slave copies from this host:port; empty: as the name servers say"
    )
    ha_heartbeat_ms: int = setting(
        5000, rocketmq="haSendHeartbeatInterval", doc="longest silence between master and slave, ms"
    )
    ha_housekeeping_ms: int = setting(
        20_000, rocketmq="haHousekeepingInterval", doc="silence after which master or slave closes the connection, ms"
    )
    ha_transfer_batch_bytes: int = setting(32_768, rocketmq="haTransferBatchSize", doc="log bytes in one frame")
    offset_check_in_slave: bool = setting(
        False, rocketmq="offsetCheckInSlave", doc="let a slave correct a consumer's offset that it does not have"
    )
    slave_read_enable: bool = setting(
        False, rocketmq="slaveReadEnable", doc="suggest a slave to groups that read messages no longer in memory"
    )

    @property
    def is_slave(self) -> bool:
        return self.broker_role == "SLAVE"

    def check_replication(self) -> None:
        """Raise ConfigError for a role that can't be; called by __post_init__."""
        if self.broker_role not in ROLES:
            raise ConfigError(f"brokerRole={self.broker_role}: use one of {', '.join(ROLES)}")
        if self.is_slave and self.broker_id <= 0:
            raise ConfigError(f"brokerId={self.broker_id}: a slave's is 1 or more, each slave of a master has its own")
        if not self.is_slave and self.broker_id != 0:
            raise ConfigError(f"brokerId={self.broker_id}: a master's is 0; use brokerRole=SLAVE for a slave")
        if self.ha_master_address and not _is_address(self.ha_master_address):
            raise ConfigError(f"haMasterAddress={self.ha_master_address}: use host:port")


def _is_address(text: str) -> bool:
    host, separator, port = text.rpartition(":")
    return bool(host and separator and port.isdecimal() and 0 < int(port) < 65536)
