"""How long no broker of three accepts a message after its master was lost."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from appliance.bench import rpc
from appliance.bench.frames import DIGITS, key_prefix, message_properties, send_frame
from gantrymq.errors import GantryError
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.bench.group.threes import Three
from tests.interop.failover.program import gaps_of, sdk

WATCHED_S = 90.0
QUIET_S = 3.0  # before a loss
ANSWER_S = 0.5  # from a process that stands still none comes
PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class Loss:
    """Seconds from the signal until a member accepted a send that began after the loss, whoever asked it; and until the
    SDK's producer, which asks the name server, had one accepted.

    ending_s: of these, until the process was no more (or stood still). A killed one whose disk is busy ends when that
    has written what it was given, and nobody can know before that it is dead."""

    any_member_s: float | None
    sdk_s: float | None
    ending_s: float = 0.0

    def later_by(self, seconds: float) -> Loss:
        later = (None if each is None else each + seconds for each in (self.any_member_s, self.sdk_s))
        return Loss(*later, seconds)

    @property
    def since_end_s(self) -> float | None:
        return None if self.any_member_s is None else self.any_member_s - self.ending_s

    def plain(self) -> dict[str, float | None]:
        return asdict(self)


class Probe:
    """Sends to all three, each by itself, while its block runs. accepted: when accepted sends began and ended."""

    def __init__(self, three: Three, topic: str) -> None:
        self.accepted: list[tuple[float, float]] = []
        self._ending = threading.Event()
        key = message_properties(key_prefix(), "0" * DIGITS)
        self._frame = send_frame(RequestCode.SEND_MESSAGE_V2, topic, 0, key, b"probe")
        self._threads = [threading.Thread(target=self._ask, args=[each]) for each in three.addresses]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def first_after(self, lost: float) -> float | None:
        """Seconds from then until the end of the first that began later."""
        return min((ended - lost for began, ended in tuple(self.accepted) if began >= lost), default=None)

    def _ask(self, address: str) -> None:
        while not self._ending.wait(PAUSE_S):
            began = time.monotonic()
            with contextlib.suppress(GantryError), rpc.connect(address, timeout_s=ANSWER_S) as connection:
                if rpc.call_frame(connection, self._frame).code == ResponseCode.SUCCESS:
                    self.accepted.append((began, time.monotonic()))


def one_loss(three: Three, folder: Path, blow: signal.Signals, number: int) -> Loss:
    """Strike the master once, and have it come back. Ends with all three in sync."""
    topic = three.new_topic(f"Lost-{blow.name}-{number}")
    probed = three.new_topic(f"Probed-{blow.name}-{number}")
    with sdk(three.name_server, topic, topic, "asyncio", folder) as client, Probe(three, probed) as probe:
        client.wait_for(lambda: client.count("GOT") > 100, "traffic")
        master = three.settled()
        time.sleep(QUIET_S)  # of three that are well
        struck_at = three.strike(master, blow)
        lost, lost_ms = time.monotonic(), time.time_ns() // 1_000_000  # what it had begun may still be accepted
        found = Loss(None, None)
        while time.monotonic() - lost < WATCHED_S and None in (found.any_member_s, found.sdk_s):
            time.sleep(0.2)  # measured are the programs' own times
            found = Loss(probe.first_after(lost), gaps_of(client, lost_ms, three.name).struck_sends_s)
        three.heal()
    three.settled()
    return found.later_by(lost - struck_at)
