"""Socket settings of broker and name server (RocketMQ: NettyServerConfig, NettyClientConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from gantrymq.errors import ConfigError
from gantrymq.remoting.protocol import FRAME_BYTES_MAX
from store.base.config import setting


@dataclass(frozen=True, kw_only=True)
class SocketSettings:
    """Limits of accepted connections, and of connecting to others."""

    idle_seconds_max: int = setting(
        120, rocketmq="serverChannelMaxIdleTimeSeconds", doc="silence after which a connection is closed, s"
    )
    backlog: int = setting(1024, rocketmq="serverSocketBacklog", doc="connections waiting to be accepted")
    send_buffer_bytes: int = setting(0, rocketmq="serverSocketSndBufSize", doc="SO_SNDBUF; 0: the system's")
    receive_buffer_bytes: int = setting(0, rocketmq="serverSocketRcvBufSize", doc="SO_RCVBUF; 0: the system's")
    write_high_bytes: int = setting(
        0, rocketmq="writeBufferHighWaterMark", doc="unsent bytes above which no more is read from a peer; 0: 4 MiB"
    )
    write_low_bytes: int = setting(
        0,
        rocketmq="writeBufferLowWaterMark",
        doc="unsent bytes below which reading goes on; 0: a quarter of high",
    )
    frame_bytes_max: int = setting(
        FRAME_BYTES_MAX, rocketmq="com.rocketmq.remoting.frameMaxLength", doc="largest frame accepted, bytes"
    )
    connect_timeout_ms: int = setting(3000, rocketmq="connectTimeoutMillis", doc="timeout of outgoing connections, ms")

    def check_sockets(self) -> None:
        """Raise ConfigError for marks that contradict each other; called by __post_init__."""
        if self.write_high_bytes and self.write_low_bytes > self.write_high_bytes:
            raise ConfigError(
                f"writeBufferLowWaterMark={self.write_low_bytes}: use at most writeBufferHighWaterMark="
                f"{self.write_high_bytes}"
            )
        if self.write_low_bytes and not self.write_high_bytes:
            raise ConfigError(f"writeBufferLowWaterMark={self.write_low_bytes}: give writeBufferHighWaterMark too")
