"""What the parts of the AdminClient share: the connections, and how several peers are asked at once."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypedDict, TypeVar

from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.name_servers import NameServers
from gantrymq.errors import GantryError, PartlyDone
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.command import JSON, RemotingCommand
from gantrymq.remoting.outages import Outages
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

T = TypeVar("T")
K = TypeVar("K")


class AdminKeywords(TypedDict, total=False):
    """How an AdminClient connects: see AdminCalls."""

    timeout_s: float
    credentials: Credentials | None
    tls: ssl.SSLContext | TlsConfig | None
    serialize_type: int


class AdminCalls(BrokerCalls):
    """Requests to a cluster: name servers by list, brokers by address."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        timeout_s: float = 5.0,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | TlsConfig | None = None,
        serialize_type: int = JSON,
    ) -> None:
        outages = Outages()
        remoting = RemotingClient(credentials=credentials, tls=tls, serialize_type=serialize_type, outages=outages)
        super().__init__(remoting, timeout_s=timeout_s)
        self.name_servers: NameServers = NameServers(remoting, name_servers, timeout_s=timeout_s, outages=outages)

    async def ask_name_server(self, code: int, ext_fields: dict[str, str] | None = None) -> RemotingCommand:
        """The answer of whichever name server answers. ResponseError when it is not a success."""
        return self.name_servers.accepted(await self.name_servers.invoke(code, ext_fields), code)


async def ask_each(keys: Iterable[K], ask: Callable[[K], Awaitable[T]]) -> tuple[dict[K, T], dict[K, GantryError]]:
    """Ask all at once; answers and failures by key. Exceptions other than GantryError are raised."""
    asked = list(keys)
    outcomes = await asyncio.gather(*map(ask, asked), return_exceptions=True)
    answers: dict[K, T] = {}
    failures: dict[K, GantryError] = {}
    for key, outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, GantryError):
            failures[key] = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            answers[key] = outcome
    return answers, failures


async def tell_each(keys: Iterable[str], tell: Callable[[str], Awaitable[object]]) -> list[str]:
    """Send a change to all at once; the keys. PartlyDone when some did not take it."""
    done, failures = await ask_each(keys, tell)
    if failures:
        raise PartlyDone(list(done), failures)
    return list(done)


def read_properties(body: bytes) -> dict[str, str]:
    """Java properties text, as brokers send their settings: `name=value` lines."""
    pairs = (line.partition("=") for line in body.decode(errors="replace").splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def write_properties(changes: dict[str, str]) -> bytes:
    """Settings as Java properties text."""
    return "".join(f"{name}={value}\n" for name, value in changes.items()).encode()
