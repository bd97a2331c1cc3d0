"""Messages that come later than they are stored: timed ones and those of transactions, sent by the SDK's producers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator

from gantrymq import Message, Producer, TransactionProducer, TransactionState
from gantrymq.client.results import SendStatus
from gantrymq.errors import GantryError
from tests.faults.replication.history import Finding
from tests.faults.replication.recorder import Pace
from tests.waiting import Beside

TOPIC = "Later"
DELAY_LEVEL = 2  # 5 s: some losses of a master fall into it
PAUSE_S = 0.2


def not_come(due: Iterable[bytes], never: Iterable[bytes], come: Counter[bytes]) -> Iterator[Finding]:
    """What was promised and is not there, and what was given up and is. come: how often each is in the log's topic."""
    missing = [body for body in due if not come[body]]
    if missing:
        yield Finding("not_come", f"{len(missing)} timed or committed messages are not in the log: {missing[0]!r}")
    false = [body for body in never if come[body]]
    if false:
        yield Finding("rolled_back_but_come", f"{len(false)} that were rolled back are in the log: {false[0]!r}")


class Later(Beside):
    """Sends while its block runs. due: bodies that have to come; never: those that must not."""

    def __init__(self, name_servers: str, pace: Pace) -> None:
        self._name_servers, self._pace = name_servers, pace
        super().__init__(lambda: asyncio.run(self._run()), "later")
        self.due: list[bytes] = []
        self.never: list[bytes] = []

    async def _run(self) -> None:
        async with (
            Producer(self._name_servers, group="Timed") as timed,
            TransactionProducer(self._name_servers, listener=Outcomes(), group="Ended") as ended,
        ):
            number = 0
            while not self.ends.is_set():
                with contextlib.suppress(GantryError):  # nothing is known of it then
                    await self._send(timed, ended, number)
                number += 1
                await asyncio.to_thread(self._pace.rest, self.ends, PAUSE_S)

    async def _send(self, timed: Producer, ended: TransactionProducer, number: int) -> None:
        if number % 3 == 0:
            body = b"timed %d" % number
            result = await timed.send(Message(TOPIC, body, delay_level=DELAY_LEVEL))
            if result.status is SendStatus.SEND_OK:
                self.due.append(body)
            return
        is_kept = number % 3 == 1
        body = b"%s %d" % (b"kept" if is_kept else b"dropped", number)
        if not is_kept:
            self.never.append(body)  # whatever is answered: it is never committed
        prepared = await ended.prepare(Message(TOPIC, body))
        if prepared.status is SendStatus.SEND_OK:
            outcome = await ended.end(prepared, TransactionState.COMMIT if is_kept else TransactionState.ROLLBACK)
            if is_kept and outcome.is_confirmed:
                self.due.append(body)


class Outcomes:
    """Asked when the end of a transaction did not come to the broker."""

    def check(self, message: Message) -> TransactionState:
        return TransactionState.COMMIT if message.body.startswith(b"kept") else TransactionState.ROLLBACK
