"""What a service manager hears: ready when all serves, alive in between, stopping at the end; children say nothing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from appliance.supervisor.service_manager import READY, STOPPING, ServiceManager
from tests.appliance_process import RunningAppliance


def heard_by(listener: socket.socket) -> list[str]:
    listener.setblocking(False)
    found = []
    while True:
        try:
            found.append(listener.recv(200).decode())
        except BlockingIOError:
            return found


def test_a_service_manager_hears_ready_alive_and_stopping(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        variables = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "120000000"}
        with RunningAppliance(tmp_path / "data", environment=variables) as gantry:
            before = heard_by(listener)
            kept = gantry.web.environ()
            gantry.stop()
        after = heard_by(listener)
    assert before.count(READY) + after.count(READY) == 1 and "WATCHDOG=1" in before
    assert STOPPING in after and READY not in after[after.index(STOPPING) :]
    assert "NOTIFY_SOCKET" not in kept and "WATCHDOG_USEC" not in kept


@pytest.mark.parametrize("variables", [{}, {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "1000"}])
def test_without_a_listener_nothing_fails(variables: dict[str, str]) -> None:
    manager = ServiceManager(variables)
    manager.tell(READY)
    assert variables == {}


async def test_a_watchdog_of_another_process_gets_nothing() -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "10", "WATCHDOG_PID": str(os.getpid() + 1)})
    await manager.beat()  # returns: it has no period
