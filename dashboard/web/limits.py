"""How much the web side takes: of one connection, of one address, in all."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from appliance.settings.appliance_config import ApplianceConfig

UNKNOWN_BODY_BYTES_MAX = 64 * 1024  # of a body whose sender has neither session nor token
BODIES_BYTES_MAX = 32 << 20  # of bodies larger than that, read at the same time
HEAD_BYTES_MAX = 16 * 1024  # request line and headers
HEADERS_MAX = 100
TARGET_BYTES_MAX = 4 * 1024  # path and query: a log line may hold them
HEAD_SECONDS_MAX = 20.0  # from the connection, or a head's first byte, to its end
HANDSHAKE_SECONDS_MAX = 60  # from a websocket's head to our answer: hundreds of tabs come back at once after a restart
IDLE_SECONDS_MAX = 60.0  # between an answer and the next head
DRAIN_SECONDS_MAX = 300.0  # for an answer that its peer reads slowly
BODY_SECONDS_MIN = 20.0  # a body has this long, and longer by its size:
BODY_BYTES_A_SECOND_MIN = 32 * 1024
LINGER_SECONDS_MAX = 5.0  # reading on after a refusal, so that the answer arrives
LINGER_BYTES_MAX = 16 << 20
WEBSOCKET_BYTES_MAX = 16 * 1024  # of a frame and of a message: subscriptions of a page have at most 4096 characters
FILES_RESERVED = 128  # descriptors that connections leave to processes, database and logs
CONNECTIONS_MIN = 16  # even where hardly any descriptor is left


@dataclass(frozen=True)
class WebLimits:
    """The limits that depend on settings and on the machine."""

    body_bytes_max: int
    connections_max: int
    connections_per_address_max: int
    file_number_max: int  # a connection whose descriptor lies above is not kept

    @classmethod
    def of(cls, config: ApplianceConfig, files_max: int | None = None) -> WebLimits:
        """`files_max`: descriptors of the process, the limit in force when None."""
        if files_max is None:
            files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files_max == resource.RLIM_INFINITY:
            files_max = 1 << 20
        connections = min(config.http_connections_max, max(files_max - FILES_RESERVED, CONNECTIONS_MIN))
        return cls(
            body_bytes_max=config.http_body_bytes_max,
            connections_max=connections,
            connections_per_address_max=min(config.http_connections_per_address_max, max(connections // 2, 1)),
            file_number_max=files_max - FILES_RESERVED // 2,
        )


def body_seconds_max(size_bytes: int) -> float:
    """How long a body of at most this size may take."""
    return BODY_SECONDS_MIN + size_bytes / BODY_BYTES_A_SECOND_MIN


class BodyRoom:
    """Memory that large bodies share."""

    def __init__(self, bytes_max: int) -> None:
        self._free_bytes = bytes_max

    def take(self, size_bytes: int) -> bool:
        """Reserve so much; False when there is no room now."""
        if size_bytes > self._free_bytes:
            return False
        self._free_bytes -= size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        self._free_bytes += size_bytes
