"""The answer to a pull, read while the connection reads it.

The caller of a pull waits in a task, and a task goes on a turn of the event loop later. A message's way to its listener
has such turns enough, so the messages are handed on before that: `take` has them when the bytes are there.

The answer ends before a damaged record. When that is the first one, the pull fails; only the answer to a second pull,
for that one message, says that it is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import operator
from collections.abc import Callable

from gantrymq.client.connection.answer_fields import int_field
from gantrymq.client.connection.received_messages import read_at_once, unpack_all
from gantrymq.client.results import LostMessage, PullResult, PullStatus
from gantrymq.errors import GantryError, RecordError
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.namespaces import Namespace
from gantrymq.message.record import place_in_log
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import refused

_STATUSES = {status.value: status for status in PullStatus}


class PullReader:
    """Waits for the answer to one pull, in place of a future; `result` is for the task that pulls.

    offset: where the pull begins. is_second: one message was asked for, which could not be read the first time.
    """

    __slots__ = ("_address", "_future", "_is_second", "_namespace", "_offset", "_packed", "_queue", "_take")

    def __init__(
        self,
        address: str,
        queue: MessageQueue,
        offset: int,
        namespace: Namespace,
        take: Callable[[PullResult], None] | None,
        *,
        is_second: bool = False,
    ) -> None:
        self._address = address
        self._queue = queue
        self._offset = offset
        self._namespace = namespace
        self._take = take
        self._is_second = is_second
        self._packed: list[MessageExt] = []  # bodies that are large and compressed
        self._future: asyncio.Future[PullResult] = asyncio.get_running_loop().create_future()

    async def result(self) -> PullResult:
        """The outcome of the pull. ResponseError when the broker refused it; RecordError: the first message is damaged;
        ProtocolError."""
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
        lost: LostMessage | None = None
        next_offset = int_field(answer, "nextBeginOffset", self._address)
        if status is PullStatus.FOUND:
            messages, self._packed, damage = read_at_once(answer.body, self._queue.broker_name)
            if not _are_in_order(messages, self._offset, next_offset):
                damage = self._put_right(messages, next_offset) or damage
            if damage is not None:
                if messages:
                    next_offset = messages[-1].queue_offset + 1
                elif self._is_second:
                    lost = LostMessage(self._queue, next_offset - 1, place_in_log(answer.body), str(damage))
                else:
                    raise damage
            self._namespace.unwrap_topics(messages)
        return PullResult(
            status,
            messages,
            next_offset,
            int_field(answer, "minOffset", self._address),
            int_field(answer, "maxOffset", self._address),
            int_field(answer, "suggestWhichBrokerId", self._address),
            lost,
        )

    def _put_right(self, messages: list[MessageExt], next_offset: int) -> RecordError | None:
        """Some record says another queue offset than its own, which a group's progress would follow: end before it.

        Read alone, it gets the offset that it was asked for at. Light queues of other brokers say others, too.
        """
        if self._is_second and len(messages) == 1:
            messages[0].queue_offset = next_offset - 1
            return None
        expected = self._offset
        for number, message in enumerate(messages):
            if not expected <= message.queue_offset < next_offset:
                del messages[number:]
                break
            expected = message.queue_offset + 1
        self._packed = [message for message in self._packed if any(message is kept for kept in messages)]
        return RecordError("its record says another queue offset")


def _are_in_order(messages: list[MessageExt], begin: int, end: int) -> bool:
    """Whether the queue offsets rise, from `begin` on and below `end`."""
    if not messages:
        return True
    offsets = [message.queue_offset for message in messages]
    if not begin <= offsets[0] or not offsets[-1] < end:
        return False
    return all(map(operator.lt, offsets, itertools.islice(offsets, 1, None)))
