"""SYNC_MASTER: the answers to sends that wait for a slave, all in one queue (RocketMQ: GroupTransferService).

No task and no timer for each: an acknowledgement answers all that it covers, one timer those that waited too long.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from gantrymq.remoting.codes import ResponseCode

Callback = Callable[[ResponseCode], None]


class _Waiter(NamedTuple):
    end_offset: int
    since: float
    callback: Callback


class GroupTransfer:
    """The queue; offsets only grow in it. Callbacks get SUCCESS or FLUSH_SLAVE_TIMEOUT; none while the master may not
    confirm: whether the message stays is not known then, and its connection is closed."""

    def __init__(self, timeout_s: float, may_answer: Callable[[], bool] = lambda: True) -> None:
        self._timeout_s = timeout_s
        self._may_answer = may_answer
        self._waiting: deque[_Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, end_offset: int, callback: Callback) -> None:
        """Call back when a slave has everything below the offset, or after the timeout."""
        self._waiting.append(_Waiter(end_offset, time.monotonic(), callback))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._expire)

    def acknowledged(self, offset: int) -> None:
        """A slave has everything below the offset."""
        waiting = self._waiting
        while waiting and waiting[0].end_offset <= offset:
            waiting.popleft().callback(ResponseCode.SUCCESS)

    def close(self) -> None:
        """No slave acknowledges any more: all that waits is stored here alone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            self._waiting.popleft().callback(ResponseCode.FLUSH_SLAVE_TIMEOUT)

    def _expire(self) -> None:
        self._timer = None
        if not self._may_answer():
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._expire)
            return
        deadline = time.monotonic() - self._timeout_s
        while self._waiting and self._waiting[0].since <= deadline:
            self._waiting.popleft().callback(ResponseCode.FLUSH_SLAVE_TIMEOUT)
        if self._waiting:
            delay_s = max(self._waiting[0].since - deadline, 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)
