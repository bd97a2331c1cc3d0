"""The answer to a pull, read while the connection reads it.

The caller of a pull waits in a task, and a task goes on a turn of the event loop later. A message's way to its listener
has such turns enough, so the messages are handed on before that: `take` has them when the bytes are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gantrymq.client.connection.answer_fields import int_field
from gantrymq.client.connection.received_messages import read_at_once, unpack_all
from gantrymq.client.results import PullResult, PullStatus
from gantrymq.errors import GantryError
from gantrymq.message.model import MessageExt
from gantrymq.message.namespaces import Namespace
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import refused

_STATUSES = {status.value: status for status in PullStatus}


class PullReader:
    """Waits for the answer to one pull, in place of a future; `result` is for the task that pulls."""

    __slots__ = ("_address", "_broker_name", "_future", "_namespace", "_packed", "_take")

    def __init__(
        self, address: str, broker_name: str, namespace: Namespace, take: Callable[[PullResult], None] | None
    ) -> None:
        self._address = address
        self._broker_name = broker_name
        self._namespace = namespace
        self._take = take
        self._packed: list[MessageExt] = []  # bodies that are large and compressed
        self._future: asyncio.Future[PullResult] = asyncio.get_running_loop().create_future()

    async def result(self) -> PullResult:
        """The outcome of the pull. ResponseError when the broker refused it; RecordError, ProtocolError."""
        result = await self._future
        if self._packed:
            await unpack_all(self._packed)
            if self._take is not None:
                self._take(result)
        return result

    # -- in place of a future, for the connection ---------------------------------------------------------------------

    def done(self) -> bool:
        return self._future.done()

    def set_result(self, answer: RemotingCommand, /) -> None:
        try:
            result = self._read(answer)
            if self._take is not None and not self._packed:
                self._take(result)
        except Exception as exc:  # whatever it is, the task that pulls has to meet it, and the connection goes on
            self._future.set_exception(exc)
        else:
            self._future.set_result(result)

    def set_exception(self, failure: GantryError, /) -> None:
        self._future.set_exception(failure)

    def exception(self) -> BaseException | None:
        return self._future.exception()

    def _read(self, answer: RemotingCommand) -> PullResult:
        status = _STATUSES.get(answer.code)
        if status is None:
            raise refused(answer, self._address, RequestCode.PULL_MESSAGE)
        messages: list[MessageExt] = []
        if status is PullStatus.FOUND:
            messages, self._packed = read_at_once(answer.body, self._broker_name)
            self._namespace.unwrap_topics(messages)
        return PullResult(
            status,
            messages,
            int_field(answer, "nextBeginOffset", self._address),
            int_field(answer, "minOffset", self._address),
            int_field(answer, "maxOffset", self._address),
            int_field(answer, "suggestWhichBrokerId", self._address),
        )
