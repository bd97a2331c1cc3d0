"""A broker that strangers fill with connections: it keeps files for its store, and says why it refuses."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench import frames, rpc
from appliance.remoting.acceptor import RESERVED_FILES, file_ceiling, files_max
from gantrymq.errors import ConnectError
from gantrymq.log_limit import LINES_MAX
from gantrymq.remoting.admin_bodies import KVTable
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.harness import LocalCluster

FILES = 300  # of the broker; half of so few are kept back
STRANGERS = 600


@contextlib.contextmanager
def crowd(address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    connections = []
    try:
        for _ in range(count):
            connections.append(rpc.connect(address))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def figures(connection: socket.socket) -> dict[str, str]:
    answer = rpc.call(connection, RemotingCommand.request(RequestCode.GET_BROKER_RUNTIME_INFO))
    return dict(KVTable.from_json(answer.body).table)


def until_answered(address: str) -> None:
    """Until a new connection is served again: the broker learns a moment later that others have gone."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with rpc.connect(address) as connection:
                figures(connection)
            return
        except ConnectError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_broker_short_of_files_refuses_strangers_in_words_and_goes_on_storing(tmp_path: Path) -> None:
    """S37: it reset connections in silence, and had no file left for its store."""
    with LocalCluster(tmp_path) as cluster:
        hard = resource.prlimit(cluster.broker.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(cluster.broker.pid, resource.RLIMIT_NOFILE, (FILES, hard))
        with rpc.connect(cluster.broker_address) as known:
            assert figures(known)["outOfFilesSecondsAgo"] == "never"
            with crowd(cluster.broker_address, STRANGERS) as strangers:
                deadline = time.monotonic() + 30
                while int(figures(known)["connectionsRefusedForFiles"]) < STRANGERS - FILES:
                    assert time.monotonic() < deadline, "refuses nobody"
                while sum(map(is_closed, strangers)) < STRANGERS - FILES:
                    assert time.monotonic() < deadline, "closes nobody"
                told = figures(known)
                assert told["openFilesMax"] == str(FILES) and int(told["outOfFilesSecondsAgo"]) < 30
                assert len(list(Path(f"/proc/{cluster.broker.pid}/fd").iterdir())) <= FILES // 2 + 5
                for number in range(8):  # topics of their own: each makes files
                    fields = frames.send_fields("PG", f"Later-{number}", 0, "")
                    answer = rpc.call(known, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, b"body"))
                    assert answer.code == 0, answer.remark
            until_answered(cluster.broker_address)
    lines = [line for line in (tmp_path / "broker.log").read_text().splitlines() if "out_of_files" in line]
    assert 0 < len(lines) <= 3 * LINES_MAX
    assert f"files_max={FILES}" in lines[0] and "too few files" in lines[0]


@pytest.mark.parametrize(("limit", "ceiling"), [(300, 150), (1024, 512), (65_536, 65_536 - RESERVED_FILES)])
def test_small_limits_keep_half_back(monkeypatch: pytest.MonkeyPatch, limit: int, ceiling: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert (files_max(), file_ceiling()) == (limit, ceiling)
