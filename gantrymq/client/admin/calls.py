"""What every part of the AdminClient stands on: connections, the name servers, and who the brokers are."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.name_servers import NameServers
from gantrymq.errors import ConfigError, GantryError, ResponseError
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import JSON, RemotingCommand
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

T = TypeVar("T")
K = TypeVar("K")


class AdminCalls(BrokerCalls):
    """Connections to a cluster: name servers by list, brokers by address."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        timeout_s: float = 5.0,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | TlsConfig | None = None,
        serialize_type: int = JSON,
    ) -> None:
        super().__init__(
            RemotingClient(credentials=credentials, tls=tls, serialize_type=serialize_type), timeout_s=timeout_s
        )
        self._name_servers = NameServers(self.remoting, name_servers, timeout_s=timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.remoting.close()

    @property
    def name_servers(self) -> list[str]:
        """The addresses this client was given."""
        return list(self._name_servers.addresses)

    async def _ask(self, code: int, ext_fields: dict[str, str] | None = None) -> RemotingCommand:
        return accepted(await self._name_servers.invoke(code, ext_fields))

    async def cluster_info(self) -> ClusterInfo:
        """Clusters, their brokers, and the brokers' addresses."""
        return ClusterInfo.from_json((await self._ask(RequestCode.GET_BROKER_CLUSTER_INFO)).body)

    async def masters(self, cluster: str | None = None) -> dict[str, str]:
        """Broker name to master's address, of one cluster or of all. Brokers without a master are left out.

        ConfigError when there is no such cluster.
        """
        info = await self.cluster_info()
        if cluster is not None and cluster not in info.cluster_addr_table:
            known = ", ".join(sorted(info.cluster_addr_table)) or "none"
            raise ConfigError(f"there is no cluster {cluster}; known: {known}")
        names = info.broker_addr_table if cluster is None else info.cluster_addr_table[cluster]
        found = {name: info.broker_addr_table[name].master_address for name in names if name in info.broker_addr_table}
        return {name: address for name, address in sorted(found.items()) if address is not None}


async def ask_each(keys: Iterable[K], ask: Callable[[K], Awaitable[T]]) -> tuple[dict[K, T], dict[K, GantryError]]:
    """Ask all at once; answers and failures by key. What is no GantryError is raised."""
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


def accepted(answer: RemotingCommand) -> RemotingCommand:
    """The answer itself; ResponseError when it is not a success."""
    if answer.code != ResponseCode.SUCCESS:
        raise ResponseError(answer.code, answer.remark)
    return answer


def read_properties(body: bytes) -> dict[str, str]:
    """Java properties text, as brokers send their settings: `name=value` lines."""
    pairs = (line.partition("=") for line in body.decode(errors="replace").splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}
