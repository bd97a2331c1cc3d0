"""Kinds of tests: the lists name what is there, unit tests stay inside, and what runs alone does run alone."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.suite.kinds import ALONE, NAMED, ORDER, OUTSIDE, READERS, TESTS, TOGETHER, is_reader, kind_of, shared_folder
from tests.suite.parallel import FilesThenAlone
from tests.suite.shares import share_of
from tests.suite.unit_guard import nothing_outside


@pytest.mark.parametrize(
    "place", [*OUTSIDE, *ALONE, *READERS, *TOGETHER, *(place for places in NAMED.values() for place in places)]
)
def test_what_the_lists_name_is_there(place: str) -> None:
    path, _, test = place.partition("::")
    assert (TESTS / path).exists()
    assert not test or f"def {test}(" in (TESTS / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("workers", [1, 3, 5])
def test_each_unit_module_is_in_one_share_and_readers_of_code_are_in_one(workers: int) -> None:
    shares = [share_of(worker, workers) for worker in range(workers)]
    modules = sorted(path for path in TESTS.rglob("test_*.py") if kind_of(path) == "unit")
    assert sorted(path for share in shares for path in share) == modules
    assert len([share for share in shares if any(map(is_reader, share))]) == 1


def test_every_kind_is_a_marker_or_other(pytestconfig: pytest.Config) -> None:
    markers = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert set(ORDER) - markers == {"outside"}


def test_a_test_of_a_module_may_be_outside_by_itself() -> None:
    test = "test_what_a_worker_loads_in_the_end_has_neither_django_nor_spark"
    assert (kind_of("tests/test_floors.py"), kind_of("tests/test_floors.py", test)) == ("unit", "outside")


@pytest.mark.parametrize(
    "act",
    [
        lambda: socket.create_connection(("127.0.0.1", 9)),
        lambda: socket.create_server(("127.0.0.1", 0)),
        lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        lambda: os.fork(),
    ],
    ids=["connect", "bind", "subprocess", "fork"],
)
def test_a_unit_test_that_goes_outside_fails(act: Callable[[], object]) -> None:
    with nothing_outside("test_x.py"), pytest.raises(pytest.fail.Exception, match=r"name it.*outside\.txt"):
        act()


def test_an_asyncio_loop_is_allowed() -> None:
    with nothing_outside("test_x.py"):
        asyncio.run(asyncio.sleep(0))


class Worker:
    """What the scheduler knows of a worker process: what it was sent, and whether it was told to end."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="gw0")

    def send_runtest_some(self, indices: list[int]) -> None:
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduler_of(workers: list[Worker], tests: list[str]) -> FilesThenAlone:
    """It has given every worker its first tests."""
    numprocesses = f"{len(workers)}*popen"
    config: Any = SimpleNamespace(getvalue={"tx": [numprocesses]}.get, option=SimpleNamespace(loadscopereorder=True))
    scheduler = FilesThenAlone(config)
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    return scheduler


def test_half_of_the_workers_leave_java_to_the_others() -> None:
    java = [f"tests/interop/test_{module}.py::{test}" for module in "abcdef" for test in "uvwx"]
    other = [f"tests/test_{module}.py::{test}" for module in "gh" for test in "uvwx"]
    workers = [Worker(), Worker(), Worker()]
    scheduler = scheduler_of(workers, [*java, *other])
    assert [len(worker.sent) for worker in workers] == [4, 4, 4]
    last = workers[2].sent.copy()
    assert min(last) >= len(java)
    for index in last:
        scheduler.mark_test_complete(workers[2], index)
    assert min(workers[2].sent) >= len(java), "the second of the other modules"
    for index in workers[2].sent[4:]:
        scheduler.mark_test_complete(workers[2], index)
    assert min(workers[2].sent) < len(java), "nothing else is left"


def test_of_four_workers_two_run_java() -> None:
    java = [f"tests/interop/test_{module}.py::{test}" for module in "abcd" for test in "uvwx"]
    other = [f"tests/test_{module}.py::{test}" for module in "ghij" for test in "uvwx"]
    workers = [Worker(), Worker(), Worker(), Worker()]
    scheduler_of(workers, [*java, *other])
    assert [min(worker.sent) < len(java) for worker in workers] == [True, True, False, False]


def test_modules_that_share_servers_go_to_one_worker_but_those_with_unit_tests_alone_do_not() -> None:
    client = "tests/gantrymq/client"
    with_servers = [f"{client}/test_with_brokers.py", f"{client}/produce/test_trace.py", f"{client}/test_options.py"]
    assert {kind_of(module) for module in with_servers} == {"outside"}
    alone = [f"{client}/consume/test_rebalance.py", "tests/a.py"]
    tests = [f"{module}::{test}" for module in [*with_servers, *alone] for test in "xyz"]
    workers = [Worker(), Worker(), Worker()]
    scheduler_of(workers, tests)
    assert [worker.sent for worker in workers] == [list(range(9)), [9, 10, 11], [12, 13, 14]]


def test_a_module_with_one_test_that_uses_a_server_goes_with_the_others() -> None:
    module = "tests/gantrymq/client/produce/test_batching.py"
    assert (kind_of(module), shared_folder(module)) == ("unit", "gantrymq/client")


def test_what_runs_alone_waits_until_the_other_workers_have_ended() -> None:
    tests = ["tests/a.py::x", "tests/b.py::x", "tests/c.py::x", f"tests/{ALONE[1]}::x", f"tests/{ALONE[0]}::x"]
    alone = [3, 4]
    workers = [Worker(), Worker()]
    scheduler = scheduler_of(workers, tests)
    assert sorted(workers[0].sent + workers[1].sent) == [0, 1, 2]
    for worker in workers:
        for index in list(worker.sent):
            scheduler.mark_test_complete(worker, index)
    (first,) = [worker for worker in workers if worker.shutting_down]
    (last,) = [worker for worker in workers if worker is not first]
    assert not set(alone) & set(last.sent)
    scheduler.remove_node(first)
    assert last.sent[-2:] == alone
    for index in alone:
        scheduler.mark_test_complete(last, index)
    assert last.shutting_down and scheduler.tests_finished
