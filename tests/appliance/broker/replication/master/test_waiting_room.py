"""Connections that have not shown who they are: few an address, the longest waiting makes room, patience grows."""

from __future__ import annotations

import asyncio

import pytest

from appliance.broker.replication.master.slave import SlaveLost
from appliance.broker.replication.master.waiting_room import HOSTS_MAX, WaitingRoom

LONG_S = 3600.0


def room(*, places: int = 6, an_address: int = 3, patience_s: float = LONG_S) -> WaitingRoom:
    return WaitingRoom(places=places, places_an_address=an_address, patience_s=patience_s, patience_s_max=LONG_S)


class Crowd:
    """Who waits in a room, by name; each until it is told to leave."""

    def __init__(self, waiting_room: WaitingRoom) -> None:
        self._room = waiting_room
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """A name's letters are its address, the rest a number."""
        for name in names:
            self.tasks[name] = asyncio.create_task(self._wait(name.rstrip("0123456789")))
            for _ in range(5):  # whoever has to go has gone
                await asyncio.sleep(0)
            await asyncio.sleep(0.001)

    async def _wait(self, host: str) -> None:
        async with self._room.place(host):
            await asyncio.Event().wait()

    def gone(self) -> dict[str, str]:
        return {name: str(task.exception()) for name, task in self.tasks.items() if task.done()}

    async def leave(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def test_the_longest_waiting_of_an_address_makes_room_for_its_next() -> None:
    crowd = Crowd(room())
    await crowd.come("a1", "b1", "a2", "a3", "a4", "a5")
    assert list(crowd.gone()) == ["a1", "a2"]
    assert "closed to make room" in crowd.gone()["a1"]
    await crowd.leave()


async def test_with_all_places_taken_the_address_with_most_makes_room() -> None:
    crowd = Crowd(room())
    await crowd.come("a1", "b1", "b2", "b3", "c1", "c2", "d1", "e1", "f1")
    assert list(crowd.gone()) == ["b1", "b2", "c1"], "not a1, which has waited longest, alone from its address"
    await crowd.leave()


async def test_who_left_counts_no_more() -> None:
    crowd = Crowd(room(an_address=1))
    await crowd.come("a1")
    crowd.tasks.pop("a1").cancel()
    await crowd.come("a2")
    assert not crowd.gone()
    await crowd.leave()


async def test_an_address_that_was_too_slow_is_waited_for_twice_as_long_until_it_was_in_time() -> None:
    waiting_room = room(patience_s=0.01)
    for seconds in ("0.01", "0.02", "0.04"):
        with pytest.raises(SlaveLost, match=f"within {seconds} s"):
            async with waiting_room.place("a"):
                await asyncio.Event().wait()
    with pytest.raises(SlaveLost, match=r"within 0\.01 s"):
        async with waiting_room.place("b"):
            await asyncio.Event().wait()
    async with waiting_room.place("a"):
        pass
    with pytest.raises(SlaveLost, match=r"within 0\.01 s"):
        async with waiting_room.place("a"):
            await asyncio.Event().wait()


async def test_patience_is_remembered_for_the_latest_addresses_alone() -> None:
    waiting_room = WaitingRoom(places=1, places_an_address=1, patience_s=0.0, patience_s_max=1.0)
    for number in range(HOSTS_MAX + 10):
        with pytest.raises(SlaveLost):
            async with waiting_room.place(str(number)):
                await asyncio.Event().wait()
    assert waiting_room.hosts_remembered == HOSTS_MAX


async def test_an_error_of_the_connection_stays_what_it_is() -> None:
    with pytest.raises(ConnectionResetError):
        async with room().place("a"):
            raise ConnectionResetError
    with pytest.raises(TimeoutError, match="of the system"):
        async with room().place("a"):
            raise TimeoutError("of the system")
