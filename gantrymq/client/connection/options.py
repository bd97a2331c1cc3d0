"""How a client connects: the keyword arguments that every producer and consumer takes.

They are listed twice. `ClientKeywords` gives a constructor's `**keywords` their names and types, `ClientOptions` their
defaults and meaning. The options of producers and consumers add to both in the same way.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from gantrymq.client.connection.option_checks import check_types
from gantrymq.errors import ConfigError
from gantrymq.message.namespaces import check_namespace
from gantrymq.remoting.command import JSON, ROCKETMQ
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig


class ClientKeywords(TypedDict, total=False):
    """See ClientOptions."""

    instance_name: str | None
    credentials: Credentials | None
    tls: ssl.SSLContext | TlsConfig | None
    serialize_type: int
    namespace: str


@dataclass(frozen=True, kw_only=True)
class ClientOptions:
    """name_servers: "host:port;host:port", or a sequence of addresses."""

    name_servers: str | Sequence[str]
    instance_name: str | None = None
    """The client id's second half, when it must stay the same over restarts."""
    credentials: Credentials | None = None
    """Who asks: a Credentials. None: requests are not signed."""
    tls: ssl.SSLContext | TlsConfig | None = None
    """A TlsConfig, or a context of Python's `ssl`. None: plain TCP."""
    serialize_type: int = JSON
    """How headers are written: JSON or ROCKETMQ, of gantrymq.remoting.command."""
    namespace: str = ""
    """What topics and groups belong to: brokers know them as "namespace%name". Empty: nothing."""

    def __post_init__(self) -> None:
        check_types(self)
        check_namespace(self.namespace)
        if self.serialize_type not in (JSON, ROCKETMQ):
            raise ConfigError(
                f"serialize_type={self.serialize_type}: it must be {JSON} (JSON) or {ROCKETMQ} (ROCKETMQ)"
            )
