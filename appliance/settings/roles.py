"""Settings of the worker processes: a frozen dataclass for each role, with RocketMQ's key for each field.

settings/loader.py reads them from files.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.acl import AclSettings
from appliance.settings.replication import ReplicationSettings
from appliance.settings.sockets import SocketSettings
from appliance.settings.tls import TlsSettings
from gantrymq.errors import ConfigError
from gantrymq.home import home_folder
from store.base.config import DAY_MS, INT_MAX, setting

LOOPBACK = "127.0.0.1"
WRITE_ACCESS = ("loopback", "signed", "any")  # see appliance/acl/namesrv_access.py


@dataclass(frozen=True, kw_only=True)
class NamesrvConfig(SocketSettings, TlsSettings, AclSettings):
    """One name server."""

    bind_address: str = setting(LOOPBACK, "bindAddress", "address to listen on")
    listen_port: int = setting(9876, "listenPort", "port; 0: a free one")
    kv_config_path: Path = setting(
        home_folder() / "namesrv" / "kvConfig.json", "kvConfigPath", "file of the key-value table"
    )
    order_message_enable: bool = setting(False, "orderMessageEnable", "add order topics to routes", live=True)
    scan_interval_ms: int = setting(
        10_000,
        "scanNotActiveBrokerInterval",
        "interval of scans for silent brokers, ms",
        within=(100, DAY_MS),
        live=True,
    )
    broker_expiry_ms: int = setting(
        120_000,
        "brokerChannelExpiredTime",
        "time without a heartbeat after which a broker is dropped, ms",
        within=(1000, DAY_MS),
        live=True,
    )
    write_access: str = setting(
        "loopback",
        "writeAccess",
        "what can register brokers and change routes: loopback (this machine, or signed requests), signed, or any",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_acl()
        if self.write_access not in WRITE_ACCESS:
            raise ConfigError(f"writeAccess={self.write_access}: use loopback, signed or any")


@dataclass(frozen=True, kw_only=True)
class BrokerConfig(ReplicationSettings, SocketSettings, TlsSettings, AclSettings):
    """One broker (RocketMQ: BrokerConfig and NettyServerConfig)."""

    broker_name: str = setting("broker-a", "brokerName", "name of the broker set")
    cluster_name: str = setting("DefaultCluster", "brokerClusterName", "cluster this broker belongs to")
    namesrv_addresses: str = setting("", "namesrvAddr", "host:port;host:port of all name servers")
    fetch_namesrv_addresses: bool = setting(
        False, "fetchNamesrvAddrByAddressServer", "without namesrvAddr: get it from an HTTP address server"
    )
    address_server_domain: str = setting("jmenv.tbsite.net", "rocketmq.namesrv.domain", "host[:port] of that server")
    address_server_subgroup: str = setting(
        "nsaddr", "rocketmq.namesrv.domain.subgroup", "last part of the path of that request"
    )
    bind_address: str = setting(LOOPBACK, "bindAddress", "address to listen on")
    listen_port: int = setting(10911, "listenPort", "port; 0: a free one (then no VIP port)")
    advertised_host: str = setting("", "brokerIP1", "address given to clients; empty: determined")
    permission: int = setting(
        6, "brokerPermission", "4 read, 2 write; less than 6 limits every topic", choices=(2, 4, 6), live=True
    )
    acl_enable: bool = setting(False, "aclEnable", "require accounts of clients: see rocketmqHome")
    credentials_file: Path | None = setting(
        None, "credentialsFile", "account that this broker signs registrations with; empty: none"
    )
    default_topic_queue_nums: int = setting(
        8, "defaultTopicQueueNums", "queues of the TBW102 template", within=(1, 65_536), live=True
    )
    auto_create_topic_enable: bool = setting(True, "autoCreateTopicEnable", "create topics on first send", live=True)
    share_created_topics_enable: bool = setting(
        True,
        "shareCreatedTopicsEnable",
        "create a topic that a send creates on all brokers of the cluster (not RocketMQ's)",
    )
    auto_create_subscription_group: bool = setting(
        True, "autoCreateSubscriptionGroup", "create consumer groups on first use", live=True
    )
    trace_topic_enable: bool = setting(False, "traceTopicEnable", "create the trace topic at start", live=True)
    trace_topic_name: str = setting("RMQ_SYS_TRACE_TOPIC", "msgTraceTopicName", "name of the trace topic")
    trace_on: bool = setting(True, "traceOn", "sent to producers as TRACE_ON", live=True)
    region_id: str = setting("DefaultRegion", "regionId", "sent to producers as MSG_REGION", live=True)
    flush_consumer_offset_interval_ms: int = setting(
        1000,
        "flushConsumerOffsetInterval",
        "interval of writes of consumer offsets, ms (RocketMQ: 5000)",
        within=(10, DAY_MS),
    )
    flush_delay_offset_interval_ms: int = setting(
        10_000, "flushDelayOffsetInterval", "interval of writes of delay offsets, ms", within=(10, DAY_MS)
    )
    reject_transaction_message: bool = setting(False, "rejectTransactionMessage", "reject half messages", live=True)
    transaction_check_interval_ms: int = setting(
        60_000,
        "transactionCheckInterval",
        "interval of checks of open transactions, ms",
        within=(10, DAY_MS),
        live=True,
    )
    transaction_timeout_ms: int = setting(
        6000, "transactionTimeOut", "age at which an open transaction is checked, ms", live=True
    )
    transaction_check_max: int = setting(
        15, "transactionCheckMax", "checks of a transaction before it is discarded", within=(1, INT_MAX), live=True
    )
    store_reply_message_enable: bool = setting(
        True, "storeReplyMessageEnable", "also store the replies of request-reply", live=True
    )
    disable_slow_consumers: bool = setting(
        False, "disableConsumeIfConsumerReadSlowly", "suspend groups that read from far behind", live=True
    )
    consumer_fall_behind_bytes: int = setting(
        16 << 30, "consumerFallbehindThreshold", "log bytes that count as far behind, for the above", live=True
    )
    queue_lock_life_ms: int = setting(
        60_000,
        "rocketmq.broker.rebalance.lockMaxLiveTime",
        "lifetime of a queue lock without renewal, ms",
        within=(1000, DAY_MS),
    )
    queue_lock_grace_ms: int = setting(
        1000,
        "queueLockGraceTime",
        "time from a client's last disconnect to the release of its queue locks, ms; -1: when they expire",
        within=(-1, DAY_MS),
        live=True,
    )
    fast_path_enable: bool = setting(
        True, "fastPathEnable", "serve plain requests with the compiled fast path when it is there (not RocketMQ's)"
    )
    message_keys_max: int = setting(
        64,
        "messageKeysMax",
        "most keys of one message; each makes an index entry (not RocketMQ's)",
        within=(1, 32_767),
        live=True,
    )
    trace_message_keys_max: int = setting(
        1024,
        "traceMessageKeysMax",
        "the same for a message of the trace topic, which has the keys of many (not RocketMQ's)",
        within=(1, 32_767),
        live=True,
    )
    heartbeat_subscriptions_max: int = setting(
        2048,
        "heartbeatSubscriptionsMax",
        "most subscriptions in one heartbeat (not RocketMQ's)",
        within=(1, 1_000_000),
        live=True,
    )
    lock_queues_max: int = setting(
        1024,
        "lockQueuesMax",
        "most queues in one request to lock or unlock queues (not RocketMQ's)",
        within=(1, 1_000_000),
        live=True,
    )
    created_a_minute_max: int = setting(
        1000,
        "createdAMinuteMax",
        "topics and groups that one connection may create by first use, a minute (not RocketMQ's)",
        within=(1, INT_MAX),
        live=True,
    )
    long_polling_enable: bool = setting(True, "longPollingEnable", "hold empty pulls until messages come", live=True)
    register_timeout_ms: int = setting(
        6000, "registerBrokerTimeoutMills", "timeout of one round of registrations, ms", within=(10, 600_000), live=True
    )
    register_period_ms: int = setting(
        30_000, "registerNameServerPeriod", "interval of rounds of registration, ms, 10 to 60 s", within=(1000, 600_000)
    )
    force_register: bool = setting(
        True, "forceRegister", "register in each round, also if the name server is up to date", live=True
    )
    compressed_register: bool = setting(False, "compressedRegister", "zlib form of the registration", live=True)
    enable_property_filter: bool = setting(
        True, "enablePropertyFilter", "SQL92 filters (RocketMQ's own default is false)", live=True
    )
    filter_support_retry: bool = setting(
        False, "filterSupportRetry", "apply SQL92 filters to retried messages too", live=True
    )
    calc_filter_bitmap_enable: bool = setting(
        False, "enableCalcFilterBitMap", "compute filter bits when a message is stored; needs enableConsumeQueueExt"
    )
    start_accept_send_timestamp: int = setting(
        0, "startAcceptSendRequestTimeStamp", "reject sends before this time, ms", live=True
    )
    fast_failure_enable: bool = setting(
        True, "brokerFastFailureEnable", "reject requests that have waited too long", live=True
    )
    send_wait_ms: int = setting(
        200, "waitTimeMillsInSendQueue", "longest wait of a send, ms", within=(1, DAY_MS), live=True
    )
    pull_wait_ms: int = setting(
        5000, "waitTimeMillsInPullQueue", "longest wait of a pull, ms", within=(1, DAY_MS), live=True
    )
    send_capacity: int = setting(
        10_000, "sendThreadPoolQueueCapacity", "most requests in the send lane", within=(1, 10_000_000), live=True
    )
    pull_capacity: int = setting(
        100_000, "pullThreadPoolQueueCapacity", "most requests in the pull lane", within=(1, 10_000_000), live=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_acl()
        if not self.broker_name or "/" in self.broker_name:
            raise ConfigError(f"brokerName={self.broker_name!r}: use a name without '/'")
        self.check_replication()
        if not 0 <= self.listen_port <= 65533:
            raise ConfigError(f"listenPort={self.listen_port}: use 0 or a port up to 65533 (slaves use the next one)")

    @property
    def advertised_address_host(self) -> str:
        """The host given to clients: brokerIP1, else the bind address, else this host's outward address."""
        if self.advertised_host:
            return self.advertised_host
        if self.bind_address not in ("", "0.0.0.0", "::"):
            return self.bind_address
        return outward_address()


@dataclass(frozen=True, kw_only=True)
class ProxyConfig(TlsSettings, AclSettings):
    """One proxy: gRPC for RocketMQ 5 clients (RocketMQ: ProxyConfig)."""

    bind_address: str = setting(LOOPBACK, "bindAddress", "address to listen on")
    listen_port: int = setting(8081, "grpcServerPort", "port of gRPC, TLS and plain; 0: a free one", within=(0, 65_535))
    namesrv_addresses: str = setting(f"{LOOPBACK}:9876", "namesrvAddr", "host:port;host:port of all name servers")
    acl_enable: bool = setting(False, "aclEnable", "require accounts of clients: see rocketmqHome")
    metric_collector: str = setting(
        "",
        "metricCollectorAddress",
        "host:port of an OpenTelemetry collector (OTLP, gRPC) that clients send their metrics to; empty: none",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_acl()
        host, _, port = self.metric_collector.rpartition(":")
        if self.metric_collector and not (host and port.isdecimal()):
            raise ConfigError(f"metricCollectorAddress={self.metric_collector}: not of the form host:port")


def outward_address() -> str:
    """This host's address on its default route; loopback when there is none. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET; connect() on UDP only looks at the routing table
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])
