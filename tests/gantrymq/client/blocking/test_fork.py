"""Blocking clients in processes that were forked from one with open clients, by each way that people fork."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from appliance.bench.peer import Peer
from tests.gantrymq.client.blocking.programs import ENVIRONMENT, FOLDER, LIMIT_S

pytestmark = pytest.mark.parametrize("peer", ["gantry"], indirect=True)


@pytest.mark.parametrize("way", ["os", "c", "multiprocessing", "billiard"])
def test_producers_work_in_a_forked_child_and_consumers_say_why_not(peer: Peer, way: str) -> None:
    finished = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", FOLDER / "forking.py", peer.namesrv_address, way],
        capture_output=True, text=True, timeout=LIMIT_S, env=ENVIRONMENT,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    *children, parent = finished.stdout.splitlines()
    assert set(children) == {"SEND_OK SEND_OK SEND_OK before a fork"}
    assert parent == "parent SEND_OK True"
    assert finished.stderr == ""


@contextmanager
def gunicorn(name_servers: str) -> Iterator[str]:
    """Two forked workers of programs/web.py; the address where they listen."""
    with subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--preload", "--workers=2", "--bind=127.0.0.1:0", "web:application"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=FOLDER,
        env=ENVIRONMENT | {"NAME_SERVERS": name_servers},
    ) as process:
        assert process.stderr is not None
        try:
            told = ""
            while not (found := re.search(r"Listening at: (http://\S+)", told)):
                line = process.stderr.readline()
                assert line, told
                told += line
            yield found[1]
        finally:
            process.terminate()
            process.communicate(timeout=LIMIT_S)


def test_workers_of_gunicorn_send_with_the_producer_that_was_preloaded(peer: Peer) -> None:
    with gunicorn(peer.namesrv_address) as address:
        workers: set[str] = set()
        for _ in range(200):
            with urllib.request.urlopen(address, timeout=LIMIT_S) as response:
                was_forked, worker, status = response.read().decode().split()
            assert (was_forked, status) == ("True", "SEND_OK")
            workers.add(worker)
            if len(workers) == 2:
                break
    assert workers
