"""Socket settings of broker and name server (RocketMQ: NettyServerConfig, NettyClientConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from gantrymq.remoting.protocol import FRAME_BYTES_MAX
from store.base.config import setting


@dataclass(frozen=True, kw_only=True)
class SocketSettings:
    """Limits of accepted connections, and of connecting to others."""

    idle_seconds_max: int = setting(
        120,
        "serverChannelMaxIdleTimeSeconds",
        "time without data after which a connection is closed, s",
        within=(1, 86_400),
    )
    backlog: int = setting(1024, "serverSocketBacklog", "connections waiting to be accepted", within=(1, 65_535))
    send_buffer_bytes: int = setting(0, "serverSocketSndBufSize", "SO_SNDBUF; 0: the system's", within=(0, 1 << 30))
    receive_buffer_bytes: int = setting(0, "serverSocketRcvBufSize", "SO_RCVBUF; 0: the system's", within=(0, 1 << 30))
    write_high_bytes: int = setting(
        0,
        "writeBufferHighWaterMark",
        "unsent bytes above which nothing further is read from a peer; 0: 4 MiB",
        within=(0, 64 << 20),
    )
    frame_bytes_max: int = setting(
        FRAME_BYTES_MAX,
        "com.rocketmq.remoting.frameMaxLength",
        "largest frame accepted, bytes",
        within=(4096, 256 << 20),
    )
    connect_timeout_ms: int = setting(
        3000, "connectTimeoutMillis", "timeout of outgoing connections, ms", within=(10, 600_000)
    )
