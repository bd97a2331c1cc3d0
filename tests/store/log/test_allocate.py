"""The thread that makes room ahead of the writer: it starts late, outlives errors and ends when told."""

from __future__ import annotations

import logging
import threading

import pytest

from store.log.allocate import Allocator
from tests.waiting import wait_until


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "store-allocate"}


def test_an_idle_store_has_no_such_thread() -> None:
    before = threads()
    allocator = Allocator(lambda: None)
    assert not threads() - before
    allocator.request()
    (thread,) = threads() - before  # those of other stores of this process may end meanwhile
    allocator.close()
    assert not thread.is_alive()
    allocator.close()  # a second time is no error


def test_each_request_is_prepared_off_the_callers_thread_before_it_ends() -> None:
    seen: list[str] = []
    allocator = Allocator(lambda: seen.append(threading.current_thread().name))
    for _ in range(5):
        allocator.request()
    allocator.close()
    assert seen == ["store-allocate"] * 5


def test_a_failure_is_told_and_the_next_request_served(caplog: pytest.LogCaptureFixture) -> None:
    outcomes = [OSError("No space left on device"), None]

    def prepare() -> None:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome

    allocator = Allocator(prepare)
    with caplog.at_level(logging.ERROR):
        allocator.request()
        allocator.request()
        wait_until(lambda: not outcomes)
        allocator.close()
    assert [record.__dict__["event"] for record in caplog.records] == ["prepare_failed"]
