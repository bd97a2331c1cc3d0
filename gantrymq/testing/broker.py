"""A name server and a broker for tests, as processes with a folder and ports of their own.

They are those of the appliance, which has to be installed beside the SDK. They end with the block, and with the process
that started them, however that ends.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from gantrymq.client.blocking.admin import SyncAdminClient
from gantrymq.errors import GantryError
from gantrymq.testing.waiting import wait_for

START_S = 120.0  # a process that ended is noticed at once: this is for a machine that is slow
STOP_S = 30.0  # then it is killed
OUTPUT_CHARS = 2000  # of a broker that did not start, in the error's text
PROPERTIES = {
    "brokerClusterName": "TestCluster",
    "brokerName": "test-broker",
    "brokerIP1": "127.0.0.1",
    "listenPort": "0",
    "mappedFileSizeCommitLog": str(16 << 20),
    "mappedFileSizeConsumeQueue": str(20_000 * 20),
    "diskMaxUsedSpaceRatio": "95",  # tests write little, however full the disk is
    "autoCreateTopicEnable": "true",
    "autoCreateSubscriptionGroup": "true",
    "traceTopicEnable": "true",
}


class BrokerNotStarted(GantryError):
    """No broker could be started; the text has the reason, and the end of what the process wrote."""


@contextlib.contextmanager
def running_broker(folder: Path, properties: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a name server and a broker in `folder` while the block runs; gives the address of the name server.

    properties: of the broker, with RocketMQ's keys. BrokerNotStarted when the appliance is not installed, or a process
    does not serve in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        own = {"listenPort": "0", "kvConfigPath": str(folder / "kvConfig.json")}
        name_server = stack.enter_context(_worker("namesrv", folder, own))
        stored = {"storePathRootDir": str(folder / "store"), "storePathCommitLog": str(folder / "store" / "commitlog")}
        settings = {**PROPERTIES, **stored, "namesrvAddr": name_server, **(properties or {})}
        stack.enter_context(_worker("broker", folder, settings))
        with SyncAdminClient(name_server) as admin:
            wait_for(admin.cluster.masters, START_S, what="the broker registers at the name server")
        yield name_server


@contextlib.contextmanager
def _worker(role: str, folder: Path, properties: Mapping[str, str]) -> Iterator[str]:
    """One process while the block runs; gives the address it serves at."""
    file, log = folder / f"{role}.properties", folder / f"{role}.log"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    environment = {**os.environ, "GANTRY_PARENT_PID": str(os.getpid())}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_appliance(), role, "-c", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    try:
        yield _address(role, process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _appliance() -> list[str]:
    """The command of the appliance."""
    if importlib.util.find_spec("appliance") is not None:
        return [sys.executable, "-m", "appliance"]
    command = shutil.which("gantry")
    if command is None:
        raise BrokerNotStarted(
            "GantryMQ's appliance is not installed here, only the SDK: install it, or name the name servers of a "
            "running broker (--gantrymq-name-servers, or GANTRYMQ_TEST_NAME_SERVERS)"
        )
    return [command]


def _address(role: str, process: subprocess.Popen[bytes], log: Path) -> str:
    """Where it serves, as it says itself."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("READY ") and line.endswith("}"):
                facts = json.loads(line.removeprefix("READY "))
                return f"127.0.0.1:{facts['listen'].rpartition(':')[2]}"
        if process.poll() is not None:
            break
        time.sleep(0.02)
    how = "does not serve" if process.returncode is None else f"ended with {process.returncode}"
    raise BrokerNotStarted(f"the {role} {how}: {log.read_text(errors='replace')[-OUTPUT_CHARS:]}")
