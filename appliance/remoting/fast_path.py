"""What a compiled fast path offers to connections: appliance/fast_path has the one there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection


class FastPath(Protocol):
    """The compiled twin of plain sends and pulls; see appliance/fast_path.

    count: how many requests the last call of `serve` served; pull_count: how many of them were pulls.
    """

    @property
    def count(self) -> int: ...
    @property
    def pull_count(self) -> int: ...
    def serve(self, buffer: bytes, start: int, count_max: int, connection: ServerConnection) -> int: ...
    def figures(self) -> tuple[int, int, dict[str, int]]:
        """How many sends and pulls it served, and how often it left a request to the Python path, by reason."""


class SocketReader(Protocol):
    """The compiled reader of plain connections; see appliance/fast_path."""

    def watch(self, connection: ServerConnection, descriptor: int) -> bool:
        """Read this connection from now on, in the place of its transport; False: it can't be watched."""

    def unwatch(self, descriptor: int) -> None:
        """Leave it to its transport again; the descriptor must still be open."""

    def drain(self) -> None:
        """Read all that are readable, and serve what came."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...
