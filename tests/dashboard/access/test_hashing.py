"""Where and how passwords are hashed. Places for work under way."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from django.contrib.auth.hashers import make_password, verify_password

from dashboard.access import hashing
from dashboard.access.in_flight import InFlight, TooManyAtOnce
from tests.waiting import WITHIN_S, until


async def test_one_hash_at_a_time_runs_on_a_thread_and_too_many_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, threads, running, most = hashing.HashingLane("test"), set(), 0, 0
    all_have_asked = threading.Event()

    def slow(password: str, encoded: str | None) -> tuple[bool, bool]:
        nonlocal running, most
        all_have_asked.wait(WITHIN_S)
        running += 1
        most = max(most, running)
        threads.add(threading.current_thread().name)
        time.sleep(0.005)
        running -= 1
        return False, False

    monkeypatch.setattr(hashing, "_verify", slow)
    asking = [asyncio.create_task(lane.verify(f"192.0.2.{n}", "guess", None)) for n in range(100)]
    await asyncio.sleep(0)
    all_have_asked.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(isinstance(answer, TooManyAtOnce) for answer in answers) == 100 - hashing.CALLERS_MAX
    assert most == 1 and threads == {"passwords-test_0"}
    assert await lane.verify("192.0.2.1", "guess", None) == (False, False), "the places are free again"


async def test_one_caller_gets_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, all_have_asked = hashing.HashingLane("test"), threading.Event()

    def slow(password: str, encoded: str | None) -> tuple[bool, bool]:
        return all_have_asked.wait(WITHIN_S), False

    monkeypatch.setattr(hashing, "_verify", slow)
    asking = [asyncio.create_task(lane.verify("192.0.2.1", "guess", None)) for _ in range(5)]
    await asyncio.sleep(0)
    all_have_asked.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert [isinstance(answer, TooManyAtOnce) for answer in answers] == [False, False, True, True, True]


async def test_who_goes_away_keeps_the_place_until_the_thread_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, has_begun, go_on = hashing.HashingLane("test"), threading.Event(), threading.Event()

    def slow(password: str, encoded: str | None) -> tuple[bool, bool]:
        has_begun.set()
        return go_on.wait(WITHIN_S), False

    monkeypatch.setattr(hashing, "_verify", slow)
    gone = [asyncio.create_task(lane.verify("192.0.2.1", "guess", None)) for _ in range(2)]
    await until(has_begun.is_set)  # before that the thread could let go of the first one as well
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)
    assert len(lane.callers) == 1, "the first hash runs on, the second one never began"
    go_on.set()
    await until(lambda: not len(lane.callers))


async def test_s17_a_name_that_nobody_has_is_as_much_work_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """S17: the answer's time does not say whether an account exists."""
    lane, encoded = hashing.HashingLane("test"), make_password("a long way from 1234")
    await lane.verify("192.0.2.1", "makes the decoy", None)
    hashes: list[str] = []

    def counted(password: str, encoded: str) -> tuple[bool, bool]:
        hashes.append(encoded.rsplit("$", 2)[0])  # algorithm, memory, rounds and threads, without salt and hash
        return verify_password(password, encoded)

    def refused(password: str) -> str:
        raise AssertionError("one more hash")

    monkeypatch.setattr(hashing, "verify_password", counted)
    monkeypatch.setattr(hashing, "make_password", refused)
    for stored in (encoded, None):
        assert await lane.verify("192.0.2.1", "wrong", stored) == (False, False)
    known, unknown = hashes
    assert known == unknown
    assert known.startswith("argon2$argon2id$v=19$m=")


def test_places_are_bounded_for_one_key_and_in_all() -> None:
    places = InFlight(all_max=3, of_one_max=2)
    places.enter("a")
    places.enter("a")
    with pytest.raises(TooManyAtOnce):
        places.enter("a")
    places.enter("b")
    with pytest.raises(TooManyAtOnce):
        places.enter("c")
    places.leave("a")
    places.enter("c")
    assert len(places) == 3


def test_nothing_is_kept_of_keys_that_left() -> None:
    places = InFlight(all_max=1, of_one_max=1)
    for number in range(3):
        places.enter(str(number))
        places.leave(str(number))
    assert len(places) == 0 and not places._of_key
