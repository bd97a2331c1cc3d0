"""etcd as a process of the appliance: found or not and why, its ports, supervised like all others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from appliance.process.local_etcd import HOST, LocalEtcd, local_etcd
from appliance.register.etcd import EtcdClient, OutcomeUnknown, endpoints_of
from appliance.settings.appliance_config import ApplianceConfig
from appliance.supervisor.etcd_node import find_etcd, lay_out_etcd
from appliance.supervisor.supervisor import HangLimit, Supervisor
from appliance.supervisor.worker_specs import worker_stages
from gantrymq.errors import ConfigError
from tests.appliance.supervisor.guarded import Guarded
from tests.conftest import require_tool
from tests.servers.etcd import REASON
from tests.waiting import WITHIN_S, until


@pytest.mark.parametrize(
    ("told", "why_none"),
    [
        ("etcd Version: 3.4.23", ""),
        ("etcd Version: 3.10.1", ""),
        ("etcd Version: 3.3.27", "is version 3.3.27, and 3.4 or later is needed"),
        ("2", "does not tell its version"),
        (None, "there is no etcd on this machine: install it"),
    ],
)
def test_an_etcd_that_is_missing_or_too_old_is_said(tmp_path: Path, told: str | None, why_none: str) -> None:
    if told is not None:
        (tmp_path / "etcd").write_text(f"#!{sys.executable}\nprint({told!r})\n")
        (tmp_path / "etcd").chmod(0o700)
    found = find_etcd(str(tmp_path))
    assert bool(found.path) == (not why_none) and why_none in found.why_none


def test_ports_stay_unless_another_program_has_one(tmp_path: Path) -> None:
    require_tool("etcd", REASON)
    lay_out_etcd(tmp_path / "etcd")
    first = local_etcd(tmp_path / "etcd")
    lay_out_etcd(tmp_path / "etcd")
    assert first is not None and local_etcd(tmp_path / "etcd") == first
    with socket.create_server((HOST, first.client_port)):
        lay_out_etcd(tmp_path / "etcd")
    again = local_etcd(tmp_path / "etcd")
    assert again is not None and again.client_port != first.client_port and again.peer_port == first.peer_port


def test_a_damaged_note_is_said(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text("{}")
    with pytest.raises(ConfigError, match="delete it, a start writes it again"):
        local_etcd(tmp_path)


async def test_an_etcd_that_hangs_is_started_again_and_keeps_what_it_has(tmp_path: Path, guarded: Guarded) -> None:
    require_tool("etcd", REASON)
    lay_out_etcd(tmp_path / "etcd")
    node = local_etcd(tmp_path / "etcd")
    assert isinstance(node, LocalEtcd)
    (spec,), *_ = worker_stages(ApplianceConfig(data=tmp_path, replicas=3))
    supervisor = Supervisor([[spec]], guarded.link, logs_folder=tmp_path, hang=HangLimit(2.0))
    task = asyncio.create_task(supervisor.run())
    client = EtcdClient(endpoints_of(node.url), deadline_s=WITHIN_S)
    try:
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        await until(lambda: _is_put(client))
        pid = supervisor.snapshot()[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: supervisor.snapshot()[0].pid not in (None, pid))
        await until(lambda: supervisor.snapshot()[0].state == "running")
        assert supervisor.snapshot()[0].exit_code == -signal.SIGKILL
        assert await _has(client)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert supervisor.snapshot()[0].state == "stopped"


async def _is_put(client: EtcdClient) -> bool:
    with contextlib.suppress(OutcomeUnknown):  # its port is open before it has elected itself
        await client.change([], {"/kept": b"1"})
    return await _has(client)


async def _has(client: EtcdClient) -> bool:
    found = (await client.read("/kept")).values.get("")
    return found is not None and found.data == b"1"
