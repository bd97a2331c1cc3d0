"""The part that all worker commands share: event loop, signals, log, and the READY line for the supervisor."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import uvloop

from appliance.process import logs
from appliance.process.malloc import keep_freed_memory
from appliance.process.stall_watch import StallWatch
from appliance.process.tasks import running
from appliance.process.thread_stacks import print_stacks_when_asked
from appliance.settings.ignored import explain_ignored
from appliance.settings.properties_file import PropertiesFile

logger = logging.getLogger(__name__)

IO_THREADS = 4  # for writing files and looking up names


class Controller(AbstractAsyncContextManager[Any], Protocol):
    """A role; it serves while its block runs. `port`: where it listens."""

    @property
    def port(self) -> int: ...


def add_options(parser: argparse.ArgumentParser, file: str, *, asks_namesrv: bool = True) -> None:
    """file: what --config names."""
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help=file)
    if asks_namesrv:
        parser.add_argument("-n", "--namesrv", metavar="ADDRESSES", help="host:port;host:port of the name servers")
    parser.add_argument("-p", "--print-config", action="store_true", help="print the effective settings and exit")
    parser.add_argument("--log-level", default="INFO", help="DEBUG, INFO, WARNING or ERROR (default: INFO)")


def run_worker(controller: Controller, role: str, host: str, facts: Mapping[str, Any]) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code."""
    keep_freed_memory()
    print_stacks_when_asked()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(controller, role, host, facts))
    return 0


async def _serve(controller: Controller, role: str, host: str, facts: Mapping[str, Any]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.set_default_executor(ThreadPoolExecutor(IO_THREADS, thread_name_prefix="io"))
    # Start all threads now: starting one later blocks the loop until the kernel has run the new thread.
    all_there = threading.Barrier(IO_THREADS)
    await asyncio.gather(*(asyncio.to_thread(all_there.wait) for _ in range(IO_THREADS)))
    async with controller:
        _announce({"role": role, "listen": f"{host}:{controller.port}", "pid": os.getpid(), **facts})
        async with running(StallWatch()):
            await stop.wait()
        logger.info("stopping", extra={"event": "stopping", "role": role})
    logger.info("stopped", extra={"event": "stopped", "role": role})


def _announce(facts: Mapping[str, Any]) -> None:
    """Print the READY line. If the reader is gone, serve all the same."""
    with contextlib.suppress(BrokenPipeError):
        print("READY " + json.dumps(facts), flush=True)


def open_log(level: str, ignored: list[str]) -> None:
    """Start logging, and log which settings of the file have no effect here, and why."""
    logs.configure(level.upper())
    if ignored:
        logger.warning("settings ignored", extra={"event": "settings_ignored", "keys": explain_ignored(ignored)})


def settings_file(path: Path | None) -> PropertiesFile | None:
    """The file to which requests write changed settings; absolute, because the working folder may change."""
    return PropertiesFile(path.absolute()) if path is not None else None
