"""What is not confirmed wakes nobody; who waits when it is confirmed is woken, whether it waited before or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.replication import read_gate
from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from appliance.broker.replication.read_gate import ReadGate
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.replication.brokers import group, send
from tests.appliance.broker.replication.pair import PULL
from tests.appliance.peer import connected

AT_ONCE = {"sysFlag": "4", "suspendTimeoutMillis": "0", "queueOffset": "0"}


class Store:
    """What a gate uses of it."""

    def __init__(self) -> None:
        self.max_physical_offset = self.shown_below = 0
        self.arrival_listener: Any = None

    def show_below(self, end: int) -> None:
        self.shown_below = end


class Gated:
    """A gate, with who listens behind it."""

    def __init__(self) -> None:
        self.store = Store()
        self.told: list[tuple[str, int]] = []
        self.all_woken = 0
        self.waits = True
        self.store.arrival_listener = self._tell
        self.gate = ReadGate(self.store, self._wake_all, lambda topic: self.waits)  # type: ignore[arg-type]
        self.gate.close_behind()

    def _tell(self, topic: str, queue_id: int, first_offset: int, tags_codes: Sequence[int]) -> None:
        self.told.append((topic, first_offset))

    def _wake_all(self) -> None:
        self.all_woken += 1

    def put(self, number: int) -> None:
        self.store.max_physical_offset += 10
        self.store.arrival_listener("t", 0, number, [0])


def test_who_waits_is_told_when_the_message_is_shown() -> None:
    gated = Gated()
    for number in range(3):
        gated.put(number)
    assert gated.told == []
    gated.gate.show(20)
    assert gated.told == [("t", 0), ("t", 1)]
    gated.gate.show(30)
    assert gated.told[2:] == [("t", 2)] and not gated.all_woken


def test_while_nobody_waits_nothing_is_kept_and_who_comes_before_it_is_shown_looks_again() -> None:
    gated = Gated()
    gated.waits = False
    for number in range(3):
        gated.put(number)
    gated.gate.show(20)
    assert (gated.told, gated.all_woken) == ([], 1)
    gated.waits = True  # it came before the third was shown
    gated.put(3)
    gated.gate.show(30)
    assert (gated.told, gated.all_woken) == ([], 2)
    gated.gate.show(40)
    assert (gated.told, gated.all_woken) == ([("t", 3)], 2), "what was kept is told one by one"


def test_of_more_than_are_kept_all_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_gate, "ARRIVALS_MAX", 1)
    gated = Gated()
    gated.put(0)
    gated.put(1)
    gated.gate.show(None)
    assert (gated.told, gated.all_woken) == ([("t", 0)], 1)


@pytest.mark.parametrize("has_set", [True, False], ids=["of a set", "never in sync"])
async def test_a_master_that_is_a_slave_now_shows_nothing_that_it_had_alone(tmp_path: Path, has_set: bool) -> None:
    """It may have to be cut, once the new master is found."""
    async with group(tmp_path) as brokers:
        async with brokers.broker("one") as one:
            await send(one, 2)
            confirmed = one.controller.store.max_physical_offset
            await send(one, 1)
        if has_set:
            file = InSyncFile(brokers.store_of("one"))
            file.load()
            file.keep(InSyncRecord(1, ("127.0.0.1:1",), confirmed, confirmed))
        async with brokers.broker("one", broker_id=1, read_confirmed_only=True) as one, connected(one.port) as peer:
            assert one.controller.config.is_slave
            answer = await peer.ask(RequestCode.PULL_MESSAGE, PULL | AT_ONCE)
    assert answer.code == ResponseCode.SUCCESS
    assert answer.ext_fields["nextBeginOffset"] == ("2" if has_set else "3")
