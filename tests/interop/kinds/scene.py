"""Scene: one kind's topic at a broker, what its readers got, and Java's program beside them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from appliance.bench.peer import Peer
from gantrymq import AdminClient, MessageExt
from gantrymq.client.connection.lifecycle import Client
from tests.interop.clients import ClientProgram

Sender = Literal["python", "java"]
AnyClient = TypeVar("AnyClient", bound=Client)


class Got(NamedTuple):
    """A message as a reader saw it; the fields are those of Java's line "GOT", behind the kind."""

    member: str
    body: str
    tags: str
    keys: str
    p: str  # a property
    flag: int
    tries: int  # 0 at first
    lag_ms: int  # from its birth to its store
    queue_id: int
    offset: int
    topic: str
    msg_id: str

    @classmethod
    def of(cls, member: str, message: MessageExt) -> Got:
        return cls(
            member,
            message.body.decode(),
            message.tags or "",
            " ".join(message.keys),
            message.properties.get("p", ""),
            message.flag,
            message.reconsume_times,
            message.store_timestamp - message.born_timestamp,
            message.queue_id,
            message.queue_offset,
            message.topic,
            message.msg_id,
        )

    @classmethod
    def told(cls, fields: list[str]) -> Got:
        return cls(*fields[:5], *map(int, fields[5:10]), *fields[10:])  # type: ignore[arg-type]


@dataclass
class Scene:
    """`stack` closes at the end: what must outlive the sends, as a producer that is asked about a transaction."""

    peer: Peer
    kind: str
    topic: str
    admin: AdminClient
    stack: AsyncExitStack
    folder: Path
    program: ClientProgram | None = None  # that reads, when it is not Python
    _got: list[Got] = field(default_factory=list)

    @property
    def namesrv(self) -> str:
        return self.peer.namesrv_address

    @property
    def group(self) -> str:
        return f"{self.topic}-group"

    @property
    def dead_group(self) -> str:
        """The group that fails, of kind dead-letters."""
        return f"{self.topic}-dead"

    async def running(self, client: AnyClient) -> AnyClient:
        """Start the client; it is closed at the end."""
        return await self.stack.enter_async_context(client)

    def saw(self, member: str, messages: Iterable[MessageExt]) -> None:
        self._got += [Got.of(member, message) for message in messages]

    @property
    def got(self) -> list[Got]:
        """In the order of arrival, and without what came once more: delivery is at least once.

        Apache's broker asks about a transaction again when the answer takes longer than until its next look, and stores
        the message for each answer.
        """
        every = self._got
        if self.program is not None:
            every = [Got.told(line[1:]) for line in self.program.lines("GOT") if line[0] == self.kind]
        seen: dict[tuple[object, ...], Got] = {}
        is_stored_again = self.kind == "transaction" and self.peer.label == "apache"
        for each in every:
            member = None if self.kind == "locks" else each.member  # there a member goes on where another left
            place = (each.msg_id,) if is_stored_again else (each.queue_id, each.offset)
            seen.setdefault((member, each.topic, each.tries, place, each.body), each)
        return list(seen.values())

    @property
    def bodies(self) -> list[str]:
        return sorted(each.body for each in self.got)
