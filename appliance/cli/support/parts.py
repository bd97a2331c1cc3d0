"""What is gathered, each part by itself: one that fails says why in its file, and the others are there."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from appliance.cli.checks.running import name_servers
from appliance.cli.doctor.main import examine
from appliance.cli.support.secrets import settings_shown
from appliance.fast_path.loader import status
from appliance.process.data_folder import guardian_pid
from appliance.process.thread_stacks import ask_for_stacks
from appliance.process.version import VERSION
from appliance.settings.appliance_config import ApplianceConfig
from appliance.supervisor.log_file import tail
from gantrymq import AdminClient
from gantrymq.errors import GantryError
from store.inspect.check import check_store
from store.inspect.folder import StoreFolder

LOG_BYTES_MAX = 4 << 20
Part = Callable[[], str]


def parts(config: ApplianceConfig, log_lines: int) -> Iterator[tuple[str, Part]]:
    """(name in the bundle, what makes its text)."""
    yield "versions.json", lambda: as_json(versions())
    yield "settings.json", lambda: as_json(settings_shown(config, os.environ))
    yield "doctor.txt", lambda: "".join(f"{one.mark} {one.sentence}\n" for one in examine(config))
    yield "processes.json", lambda: as_json(list(processes(config)))  # before the logs, which get the stacks
    yield "cluster.json", lambda: as_json(cluster(config))
    for path in sorted(config.data.glob("**/*.properties")):
        yield f"properties/{path.relative_to(config.data).as_posix()}", path.read_text
    for folder in sorted(path.parent for path in config.brokers_folder.glob("*/store")):
        yield f"stores/{folder.name}.json", lambda folder=folder: as_json(store(folder / "store"))  # type: ignore[misc]
    for path in sorted(config.logs_folder.glob("*.log")):
        yield f"logs/{path.name}", lambda path=path: last_lines(path, log_lines)  # type: ignore[misc]


def versions() -> dict[str, Any]:
    packages = sorted(f"{each.name}=={each.version}" for each in importlib.metadata.distributions())
    return {
        "gantrymq": VERSION,
        "fastPath": {"isOn": status().is_on, "why": status().why},
        "python": sys.version,
        "executable": sys.executable,
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "cores": os.cpu_count(),
        "memoryBytes": psutil.virtual_memory().total,
        "bootedAt": psutil.boot_time(),
        "madeAt": time.time(),
        "packages": packages,
    }


def processes(config: ApplianceConfig) -> Iterator[dict[str, Any]]:
    """Those of this appliance, from the guardian down; each prints the stacks of its threads into its log."""
    guardian = _guardian(config)
    if guardian is None:
        return
    for process in [guardian, *guardian.children(recursive=True)]:
        try:
            with process.oneshot():
                yield {
                    "pid": process.pid,
                    "parent": process.ppid(),
                    "command": process.cmdline(),
                    "state": process.status(),
                    "startedAt": process.create_time(),
                    "cpuSeconds": sum(process.cpu_times()[:2]),
                    "residentBytes": process.memory_info().rss,
                    "openFiles": process.num_fds(),
                    "stacksAreInItsLog": ask_for_stacks(process.pid, guardian.pid),
                    "threads": [_thread(process.pid, each.id) for each in process.threads()],
                }
        except psutil.Error as exc:
            yield {"pid": process.pid, "why": str(exc)}


def cluster(config: ApplianceConfig) -> dict[str, Any]:
    """The cluster as its name servers and brokers tell of it, figures included."""

    async def ask() -> dict[str, Any]:
        addresses = ";".join(name_servers(config))
        async with AdminClient(addresses, credentials=config.client_credentials, tls=config.client_tls) as admin:
            info = await admin.cluster.info()
            found: dict[str, Any] = {"brokers": info.to_dict(), "figures": {}}
            for name, data in info.broker_addr_table.items():
                for number, address in data.broker_addrs.items():
                    try:
                        told: Any = await admin.brokers.runtime_info(address)
                    except GantryError as exc:
                        told = str(exc)
                    found["figures"][f"{name} {number} {address}"] = told
            return found

    return asyncio.run(ask())


def store(folder: Path) -> dict[str, Any]:
    """What `gantry store check` tells."""
    with StoreFolder(folder) as opened:
        result = check_store(opened)
    found = [{"level": each.level.name, "text": each.text} for each in result.findings]
    return {"facts": {fact.name: fact.text for fact in result.facts}, "findings": found}


def last_lines(path: Path, lines: int) -> str:
    return tail(path, lines=lines, bytes_max=LOG_BYTES_MAX) + "\n"


def as_json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n"


def _guardian(config: ApplianceConfig) -> psutil.Process | None:
    """The appliance's first process, whose number is in the lock of the data folder."""
    pid = guardian_pid(config.data)
    try:
        return psutil.Process(pid) if pid else None
    except psutil.Error:
        return None


def _thread(pid: int, number: int) -> dict[str, Any]:
    """What the kernel tells of a thread: its name, whether it runs, and what it waits for."""
    place = Path(f"/proc/{pid}/task/{number}")
    found: dict[str, Any] = {"id": number}
    for name in ("comm", "wchan"):
        try:
            found[name] = (place / name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError as exc:
            found[name] = exc.strerror
    return found
