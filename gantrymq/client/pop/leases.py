"""What a POP consumer holds: messages that it polled, each leased by its broker until acknowledged or its time is over.

Leases are renewed when half of their time is over, for `renew_for_s` after the poll. A message's handle is its property
POP_CK, so one can be acknowledged as long as it is leased, renewed or not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from gantrymq.client.connection.session import ClientSession
from gantrymq.client.pop import pop_calls
from gantrymq.client.pop.options import PopConsumerOptions
from gantrymq.client.produce.trace import ConsumeTracer, TracedCall
from gantrymq.errors import ConfigError, ConnectError, GantryError, LeaseEnded, RequestTimeout
from gantrymq.message.model import MessageExt
from gantrymq.message.pop_handle import PopHandle
from gantrymq.message.properties import POP_CK

logger: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")
Place = tuple[str, ...]

AGAIN_S = 1.0  # between two tries of what a broker could not be asked
GIVE_BACK_S = 0.2  # until then the broker knows that nothing of this consumer waits there any more
AT_ONCE = 64  # renewals on their way
RENEWALS_A_LEASE = 6  # looks at what is to be renewed, in the time of one lease


@dataclass(slots=True)
class Held:
    """One message. Times: monotonic seconds."""

    message: MessageExt
    polled_at: float
    due_at: float
    given_at: float = 0.0
    traced: TracedCall | None = None


class Leases:
    """Those of one consumer."""

    def __init__(
        self, session: ClientSession, options: PopConsumerOptions, tracer: ConsumeTracer | None = None
    ) -> None:
        self._session = session
        self._tracer = tracer
        self._options = options
        self._group = session.namespace.wrap(options.group)
        self._held: dict[Place, Held] = {}
        self.has_room: asyncio.Event = asyncio.Event()  # set whenever a message is held no longer

    def __len__(self) -> int:
        return len(self._held)

    # -- holding ------------------------------------------------------------------------------------------------------

    def hold(self, messages: Iterable[MessageExt]) -> None:
        """They were polled just now."""
        now = time.monotonic()
        for message in messages:
            self._held[_place_of(message)] = Held(message, now, now + self._options.invisible_s)

    def given(self, messages: Iterable[MessageExt]) -> None:
        """The application gets them now."""
        if self._tracer is None:
            return
        for message in messages:
            if (held := self._held.get(_place_of(message))) is not None:
                held.given_at, held.traced = time.monotonic(), self._tracer.before([message])

    def _let_go(self, messages: Iterable[MessageExt], *, is_done: bool = False) -> None:
        for message in messages:
            self._trace_end(self._held.pop(_place_of(message), None), is_done=is_done)
        self.has_room.set()

    def _trace_end(self, held: Held | None, *, is_done: bool = False) -> None:
        if self._tracer is not None and held is not None and held.traced is not None:
            took_s = time.monotonic() - held.given_at
            self._tracer.after(held.traced, took_s, is_done=is_done, has_raised=not is_done)

    async def keep_renewing(self) -> None:
        """Renew until cancelled."""
        invisible_s = self._options.invisible_s
        while True:
            await asyncio.sleep(invisible_s / RENEWALS_A_LEASE)
            now = time.monotonic()
            due = [held for held in self._held.values() if held.due_at - now < invisible_s / 2]
            for at in range(0, len(due), AT_ONCE):
                await asyncio.gather(*(self._renew(held) for held in due[at : at + AT_ONCE]))

    async def _renew(self, held: Held) -> None:
        now, message = time.monotonic(), held.message
        why: object = "renew_for_s is over"
        if now - held.polled_at < self._options.renew_for_s:
            try:
                await self._change(message, self._options.invisible_s)
                held.due_at = now + self._options.invisible_s
                return
            except GantryError as exc:
                if not isinstance(exc, LeaseEnded) and now < held.due_at:
                    return  # tried again while it lasts; the connection tells what is wrong
                why = exc
        if self._held.get(_place_of(message)) is held:  # not acknowledged meanwhile
            self._let_go([message])
            logger.warning(
                "lease not renewed, message is delivered again (msg_id=%s): %s",
                message.msg_id,
                why,
                extra={"event": "lease_not_renewed", "msg_id": message.msg_id, "why": str(why)},
            )

    # -- what becomes of them -----------------------------------------------------------------------------------------

    async def acknowledge(self, messages: Iterable[MessageExt]) -> None:
        """They are done with. LeaseEnded when they were leased no longer."""
        by_broker: dict[str, list[MessageExt]] = defaultdict(list)
        for message in messages:
            by_broker[_handle_of(message).broker].append(message)
        await asyncio.gather(*(self._acknowledge(broker, some) for broker, some in by_broker.items()))

    async def _acknowledge(self, broker: str, messages: list[MessageExt]) -> None:
        leased = [(self._session.namespace.wrap(message.topic), _handle_of(message)) for message in messages]

        async def ask(address: str) -> None:
            if len(leased) == 1:
                await pop_calls.acknowledge(self._session.calls, address, self._group, *leased[0])
            else:
                await pop_calls.acknowledge_all(self._session.calls, address, self._group, leased)

        try:
            await self._insist(broker, messages[0].topic, ask)
        except LeaseEnded:
            self._let_go(messages)
            raise
        self._let_go(messages, is_done=True)

    async def change_invisible_time(self, message: MessageExt, invisible_s: float) -> None:
        """It is delivered again after so long, from now on, unless acknowledged; it is not renewed any more."""
        self._let_go([message])

        async def ask(address: str) -> None:
            await self._change(message, invisible_s)

        await self._insist(_handle_of(message).broker, message.topic, ask)

    async def bury(self, message: MessageExt) -> None:
        """Make it a dead letter of the group."""

        async def ask(address: str) -> None:
            calls = self._session.calls
            await calls.send_back(
                address, self._options.group, message, topic=message.topic, delay_level=-1, max_reconsume_times=0
            )
            await pop_calls.acknowledge(
                calls, address, self._group, self._session.namespace.wrap(message.topic), _handle_of(message)
            )

        await self._insist(_handle_of(message).broker, message.topic, ask)
        self._let_go([message])

    async def give_back(self) -> None:
        """Have others get what is held; what can't be given back comes to them when its time is over."""
        held = [each.message for each in self._held.values()]
        self._let_go(held)
        for at in range(0, len(held), AT_ONCE):
            outcomes = await asyncio.gather(
                *(self._change(message, GIVE_BACK_S) for message in held[at : at + AT_ONCE]), return_exceptions=True
            )
            failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            if failures:
                logger.info(
                    "not given back (messages=%s): %s",
                    len(failures),
                    failures[0],
                    extra={"event": "messages_not_given_back", "count": len(failures), "error": str(failures[0])},
                )

    async def _change(self, message: MessageExt, invisible_s: float) -> None:
        handle = _handle_of(message)
        topic = self._session.namespace.wrap(message.topic)
        changed = await pop_calls.change_invisible_time(
            self._session.calls, self._address(handle.broker), self._group, topic, handle, int(invisible_s * 1000)
        )
        message.properties[POP_CK] = str(changed)

    async def _insist(self, broker: str, topic: str, ask: Callable[[str], Awaitable[T]]) -> T | None:
        """Ask the broker; while it can't be reached, again and again, for as long as a lease lasts.

        None: an earlier try, whose answer was lost, had ended the lease."""
        until, has_failed = time.monotonic() + self._options.invisible_s, False
        while True:
            try:
                return await ask(self._address(broker))
            except LeaseEnded:
                if has_failed:
                    return None
                raise
            except (ConnectError, RequestTimeout):
                if time.monotonic() >= until or not self._session.is_open:
                    raise
            has_failed = True
            self._session.look_again_soon(topic)
            await asyncio.sleep(AGAIN_S)

    def _address(self, broker: str) -> str:
        address = self._session.routes.address(broker)
        if address is None:
            raise ConnectError(broker, "this broker has no master now")
        return address


def _handle_of(message: MessageExt) -> PopHandle:
    """ConfigError when it was not polled by a POP consumer."""
    try:
        return PopHandle.parse(message.properties.get(POP_CK, ""))
    except ValueError as exc:
        raise ConfigError(f"message {message.msg_id} was not polled by a POP consumer: it has no lease") from exc


def _place_of(message: MessageExt) -> Place:
    return message.topic, *_handle_of(message).place
