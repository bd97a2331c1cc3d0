"""What answers say in their ext fields."""

from __future__ import annotations

from gantrymq.errors import ProtocolError
from gantrymq.remoting.command import RemotingCommand


def int_field(answer: RemotingCommand, name: str, address: str) -> int:
    """A number out of an answer's ext fields. ProtocolError when it is not there."""
    try:
        return int(answer.ext_fields[name])
    except (KeyError, ValueError) as exc:
        raise ProtocolError(f"{address} answered without a usable {name}") from exc
