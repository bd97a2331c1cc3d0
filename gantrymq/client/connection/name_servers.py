"""Asking one of several name servers. They all know the same, so the one that answered last is asked again."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gantrymq.errors import ConfigError, ConnectError, RequestTimeout, ResponseError, WrongType
from gantrymq.remoting.client import RemotingClient, split_address
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import refused
from gantrymq.remoting.outages import Outages


def parse_name_servers(addresses: str | Sequence[str]) -> list[str]:
    """ "host:port;host:port" (or a sequence) to addresses. ConfigError when there is none, or one is no address."""
    parts = addresses.replace(",", ";").split(";") if isinstance(addresses, str) else addresses
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise WrongType(f'name servers: "host:port;host:port" or a sequence of addresses is wanted, not {parts!r:.60}')
    found = [part.strip() for part in parts if part.strip()]
    if not found:
        raise ConfigError('no name server: give at least one "host:port"')
    for address in found:
        try:
            split_address(address)
        except ConnectError as exc:
            raise ConfigError(f"name server {address!r}: {exc.reason}, such as 127.0.0.1:9876") from None
    return found


class NameServers:
    """The name servers of a cluster behind one `invoke`."""

    def __init__(
        self,
        remoting: RemotingClient,
        addresses: str | Sequence[str],
        *,
        timeout_s: float = 3.0,
        outages: Outages | None = None,
    ) -> None:
        self.addresses: list[str] = parse_name_servers(addresses)
        self.outages: Outages = Outages() if outages is None else outages
        self._remoting = remoting
        self._timeout_s = timeout_s
        self._current = random.randrange(len(self.addresses))

    async def invoke(
        self, code: int, ext_fields: dict[str, str] | None = None, body: bytes = b"", *, timeout_s: float | None = None
    ) -> RemotingCommand:
        """The first answer, whatever its code. Raises what the last one asked raised when none answers.

        timeout_s: for all of them together, an equal part for each."""
        each_s = self._timeout_s if timeout_s is None else timeout_s / len(self.addresses)
        failure: ConnectError | RequestTimeout | None = None
        first = self._current  # others ask at the same time, and may change it
        for number in range(first, first + len(self.addresses)):
            at = number % len(self.addresses)
            address = self.addresses[at]
            request = RemotingCommand.request(code, dict(ext_fields or {}), body)
            try:
                answer = await self._remoting.invoke(address, request, timeout_s=each_s)
                self.outages.worked("question to a name server", address)
                self._current = at
                return answer
            except (ConnectError, RequestTimeout) as exc:
                failure = exc
                if self._current == at:
                    self._current = (at + 1) % len(self.addresses)
                self.outages.failed("question to a name server", address, exc)
        assert failure is not None
        raise failure

    def was_any_heard(self) -> bool:
        """Whether something came over an open connection to one of them."""
        connections = (self._remoting.open_connection(address) for address in self.addresses)
        return any(connection.has_heard for connection in connections if connection is not None)

    def accepted(self, answer: RemotingCommand, code: int) -> RemotingCommand:
        """The answer to request `code` itself; ResponseError when it is not a success."""
        if answer.code != ResponseCode.SUCCESS:
            raise self.refused(answer, code)
        return answer

    def refused(self, answer: RemotingCommand, code: int) -> ResponseError:
        """The error for an answer to request `code`, at the server that answered last."""
        return refused(answer, self.addresses[self._current], code)
