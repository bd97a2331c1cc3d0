"""Interceptors: the application's code around what a producer sends and what a push consumer's listener gets.

The first of a client's interceptors is the outermost. What one raises is raised by the send, or counts as the
listener's failure.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gantrymq.client.exits import awaited
from gantrymq.client.results import ConsumeResult, RetryLater, SendResult
from gantrymq.errors import WrongType
from gantrymq.message.model import Message, MessageExt

T = TypeVar("T")
SendProceed = Callable[[], Awaitable[SendResult]]
ConsumeProceed = Callable[[], Awaitable[ConsumeResult | RetryLater]]


@dataclass(frozen=True, slots=True)
class SendCall:
    """One send, from packing to the broker's answer, with all its tries.

    messages: one, or those of a batch; all of one topic. is_collected: `collect` was called for each of them before.
    """

    messages: Sequence[Message]
    group: str
    client_id: str
    is_collected: bool = False


@dataclass(frozen=True, slots=True)
class ConsumeCall:
    """One call of a listener. messages: of one queue, at least one."""

    messages: list[MessageExt]
    group: str
    client_id: str


class Interceptor:
    """What goes around sends and listener calls. Override what is wanted; the methods here only go on.

    `send` and `consume` run on the event loop: they may await, and should not block. They may change the properties of
    the messages that are sent, but not their topic.
    """

    def collect(self, message: Message) -> None:
        """A message was handed to `send_soon` or `send_many`, or to `send_oneway`: here, where the call is made. `send`
        comes later, for a whole batch; one-way messages have none."""

    async def send(self, call: SendCall, proceed: SendProceed) -> SendResult:
        """Around a send: `await proceed()` packs the messages, sends them and returns or raises the outcome."""
        return await proceed()

    async def consume(self, call: ConsumeCall, proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        """Around a listener call: `await proceed()` calls it and returns what it says, or raises what it raises. What
        is returned here counts."""
        return await proceed()


async def around_send(chain: Sequence[Interceptor], call: SendCall, proceed: SendProceed) -> SendResult:
    """Send through all of them."""
    for each in reversed(chain):
        proceed = functools.partial(each.send, call, proceed)
    return await awaited(_outcome(proceed))


async def around_consume(
    chain: Sequence[Interceptor], call: ConsumeCall, proceed: ConsumeProceed
) -> ConsumeResult | RetryLater:
    """Call the listener through all of them."""
    for each in reversed(chain):
        proceed = functools.partial(each.consume, call, proceed)
    return await awaited(_outcome(proceed))


async def _outcome(proceed: Callable[[], Awaitable[T]]) -> T:
    """Also when it is a plain method, which may exit before there is anything to wait for."""
    return await proceed()


def check_interceptors(chain: object) -> None:
    """WrongType unless it is a sequence of interceptors."""
    if not isinstance(chain, Sequence) or not all(isinstance(each, Interceptor) for each in chain):
        raise WrongType(f"interceptors={chain!r:.60}: a list of objects derived from gantrymq.Interceptor is wanted")
