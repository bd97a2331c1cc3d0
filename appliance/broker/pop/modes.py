"""Whether a group pulls a topic or pops it: never both at one time, since both would move one offset.

An administrator sets a mode (401). Without one, who comes first decides: while messages are out, and for a while after
the last pop, the group pops; while a pull of the group waits, it pulls. Each refusal says what to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from appliance.errors import BrokerError
from gantrymq.remoting.codes import ResponseCode

POP_IDLE_S = 60.0  # without a pop, and with no message out, a group pops no longer: clients poll every 20 s
MODES_MAX = 100_000
PULL, POP = "PULL", "POP"


class Mode(NamedTuple):
    """How a group consumes a topic. share: how many further members share a member's queues; 0: all do."""

    name: str
    share: int = 0


class Modes:
    """One broker's. popping: topics and groups that pop now, for the hot path of pulls: a pull of any other is free.

    has_leases: whether messages of the topic are out for the group; has_retries: whether some wait in its retry topic;
    leave: move those to where pulls find them, in the background.
    """

    def __init__(
        self,
        has_leases: Callable[[str, str], bool],
        has_retries: Callable[[str, str], bool],
        leave: Callable[[str, str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._has_leases = has_leases
        self._has_retries = has_retries
        self._leave = leave
        self.leaving: set[tuple[str, str]] = set()  # what is being moved: neither pulls nor pops meanwhile
        self._clock = clock
        self.table: dict[tuple[str, str], Mode] = {}
        self.popping: dict[tuple[str, str], float] = {}  # to when the last pop came, monotonic

    def get(self, topic: str, group: str) -> Mode | None:
        """As an administrator has set it, None when none has."""
        return self.table.get((topic, group))

    def put(self, topic: str, group: str, mode: Mode) -> None:
        """Take over a mode. Raises BrokerError when too many are set."""
        if (topic, group) not in self.table and len(self.table) >= MODES_MAX:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, f"{MODES_MAX} modes are set already")
        self.table[topic, group] = mode
        if mode.name == POP:
            self.popping[topic, group] = self._clock()
        else:
            self.popping.pop((topic, group), None)

    def pops(self, topic: str, group: str) -> bool:
        """Whether the group pops the topic now."""
        since = self.popping.get((topic, group))
        if since is None:
            return False
        mode = self.table.get((topic, group))
        if mode is not None:
            return mode.name == POP
        if (
            self._clock() - since < POP_IDLE_S
            or (topic, group) in self.leaving
            or self._has_leases(topic, group)
            or self._has_retries(topic, group)
        ):
            return True
        del self.popping[topic, group]
        return False

    def check_pull(self, topic: str, group: str) -> None:
        """Raise BrokerError unless the group may pull the topic. For pairs in `popping`."""
        if not self.pops(topic, group):
            return
        is_idle = self._clock() - self.popping[topic, group] >= POP_IDLE_S
        if (topic, group) in self.leaving:
            raise _is_changing(topic, group)
        if is_idle and self.get(topic, group) is None and not self._has_leases(topic, group):
            self._leave(topic, group)
            raise _is_changing(topic, group)
        raise BrokerError(
            ResponseCode.NO_PERMISSION,
            f"the group {group} consumes topic {topic} by POP: a pull would take what others have out. Set its mode to "
            "PULL with setConsumeMode, or wait a minute after its last pop",
        )

    def note_pop(self, topic: str, group: str, is_pulled: Callable[[], bool]) -> None:
        """A pop came. BrokerError when the group pulls. is_pulled: whether it does now, by what waits."""
        if (topic, group) in self.leaving:
            raise _is_changing(topic, group)
        mode = self.table.get((topic, group))
        if mode is not None and mode.name == PULL:
            raise BrokerError(
                ResponseCode.NO_PERMISSION,
                f"the group {group} consumes topic {topic} by pulling: set its mode to POP with setConsumeMode",
            )
        if mode is None and (topic, group) not in self.popping and is_pulled():
            raise BrokerError(
                ResponseCode.NO_PERMISSION,
                f"the group {group} consumes topic {topic} by pulling, a consumer of it waits for messages: end its "
                "consumers, or set its mode to POP with setConsumeMode",
            )
        self.popping[topic, group] = self._clock()


def _is_changing(topic: str, group: str) -> BrokerError:
    return BrokerError(
        ResponseCode.SYSTEM_BUSY,
        f"the group {group} changes from POP to pulling topic {topic}, its messages are being moved: try again",
    )
