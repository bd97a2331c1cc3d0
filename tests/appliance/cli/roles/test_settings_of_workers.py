"""`gantry broker` and `gantry namesrv` with a RocketMQ file: what is ignored is told, what a request changed stays."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from appliance.own_files import ROOT
from gantrymq import AdminClient
from gantrymq.remoting.codes import RequestCode
from tests.waiting import WITHIN_S


async def started(role: str, properties: Path) -> tuple[Process, str, str]:
    """A worker that serves, its address, and what it logged until then."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "appliance", role, "-c", str(properties)),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=PIPE,
        stderr=PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stdout.readline(), WITHIN_S)).decode()
    assert line.startswith("READY "), (await process.stderr.read()).decode()
    logged = (await asyncio.wait_for(process.stderr.readline(), WITHIN_S)).decode()
    return process, json.loads(line.removeprefix("READY "))["listen"], logged


async def killed(process: Process) -> None:
    process.kill()
    await process.communicate()


async def test_what_was_changed_and_answered_outlives_a_kill(tmp_path: Path) -> None:
    properties = tmp_path / "broker.conf"
    text = f"# kept\nlistenPort=0\nstorePathRootDir={tmp_path / 'store'}\nsendMessageThreadPoolNums=16\n"
    text += "mappedFileSizeCommitLog=1048576\nmaxHashSlotNum=5000\nmaxIndexNum=20000\n"
    properties.write_text(text)
    process, address, logged = await started("broker", properties)
    try:
        assert "sendMessageThreadPoolNums (one event loop serves all requests" in logged
        async with AdminClient("127.0.0.1:1") as admin:
            info = await admin.brokers.runtime_info(address)
            assert info["settingsIgnored"].startswith("sendMessageThreadPoolNums (one event loop")
            await admin.calls.call(address, RequestCode.UPDATE_BROKER_CONFIG, None, b"fileReservedTime=49")
    finally:
        await killed(process)
    assert properties.read_text() == text + "fileReservedTime=49\n"
    process, address, _ = await started("broker", properties)
    try:
        async with AdminClient("127.0.0.1:1") as admin:
            answer = await admin.calls.call(address, RequestCode.GET_BROKER_CONFIG)
            assert "fileReservedTime=49" in answer.body.decode().splitlines()
    finally:
        await killed(process)


async def test_the_same_holds_for_a_name_server(tmp_path: Path) -> None:
    properties = tmp_path / "namesrv.conf"
    properties.write_text(f"listenPort=0\nkvConfigPath={tmp_path / 'kv.json'}\nserverWorkerThreads=8\n")
    process, address, logged = await started("namesrv", properties)
    try:
        assert "serverWorkerThreads (one event loop" in logged
        async with AdminClient(address) as admin:
            await admin.calls.call(address, RequestCode.UPDATE_NAMESRV_CONFIG, None, b"orderMessageEnable=true")
    finally:
        await killed(process)
    assert properties.read_text().endswith("serverWorkerThreads=8\norderMessageEnable=true\n")
