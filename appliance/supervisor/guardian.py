"""The process behind `gantry up`: parent of all others, so small that nothing in it should ever fail.

It starts the web process (Django, Daphne, and the supervisor that decides what runs) and, when that asks for them, the
name server, the brokers and jobs. When the web process dies or hangs, the others serve on; the next web process is told
what runs and takes it over. When the guardian ends, all end: in order when it is asked to, and by the kernel's signal
to orphans when it is killed. It takes no connections, loads no Django, and reaps what others leave behind, as the first
process of a container must.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import logging.handlers
import os
import signal
import sys
import time
from collections import deque
from typing import Any

from appliance.process import logs
from appliance.process.data_folder import DataFolderInUse, DataFolderLock
from appliance.settings.appliance_config import ApplianceConfig
from appliance.supervisor.backoff import Backoff
from appliance.supervisor.process_identity import children_of
from appliance.supervisor.spawner import Spawner
from appliance.supervisor.web_process import COMMAND, Ending, WebProcess

logger = logging.getLogger("appliance.supervisor.guardian")  # it runs as __main__

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
START_ATTEMPTS = 3
ENDINGS_KEPT = 20
DELAY_AFTER_SERVING_MAX_S = 1.0  # one that came up will come up again; only one that does not is left alone for longer
ORPHAN_LOOK_S, ORPHAN_LOOKS = 0.05, 100  # so many times, until they have ended
ORPHAN_ROUNDS = 3  # who is killed may leave orphans in turn
LOG_BYTES_MAX = 1 << 20
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Guardian:
    """One start of the appliance. `command` starts the web process."""

    def __init__(self, *, stop_grace_s: float, web_hang_s: float, command: tuple[str, ...] = COMMAND) -> None:
        self._stop_grace_s = stop_grace_s
        self._web_hang_s = web_hang_s
        self._command = command
        self._web: WebProcess | None = None
        self._spawner = Spawner(self._tell)
        self._stopping = asyncio.Event()
        self._backoff = Backoff()
        self._has_served = False
        self._web_starts = 0
        self._endings: deque[dict[str, Any]] = deque(maxlen=ENDINGS_KEPT)
        self._found_here = children_of(os.getpid())  # whoever started us may have left children to this process

    async def run(self) -> int:
        """Until everything has ended. Returns the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup's wish
                loop.add_signal_handler(number, self._ask_to_stop, number)
        try:
            return await self._keep_web_running()
        finally:
            await self._spawner.stop_all(self._stop_grace_s)
            await self._end_orphans()

    async def _keep_web_running(self) -> int:
        """Life after life of the web process, until one says that all is stopped, or none comes up at the start."""
        while True:
            ending = await self._web_life()
            if ending.finish_code is not None:
                return ending.finish_code
            if self._stopping.is_set():
                logger.warning("web process ended while it stopped the others", extra={"reason": ending.reason})
                return 0
            self._note(ending)
            if not self._has_served and self._web_starts >= START_ATTEMPTS:
                print("gantry up: the web process does not come up; logs/gantry.log may say why", file=sys.stderr)
                return 1
            delay_s = self._backoff.next_delay_s(ending.lived_s)
            if not await self._pause(min(delay_s, DELAY_AFTER_SERVING_MAX_S) if ending.has_served else delay_s):
                return 0

    async def _web_life(self) -> Ending:
        self._web_starts += 1
        web = self._web = WebProcess(self._spawner, hang_s=self._web_hang_s, command=self._command)
        announcing = asyncio.create_task(self._announce(web))
        hello = {
            "event": "hello",
            "guardian": os.getpid(),
            "web_starts": self._web_starts,
            "has_served": self._has_served,
            "endings": list(self._endings),
            "children": self._spawner.facts(),
        }
        try:
            return await web.run(hello)
        finally:
            self._web = None
            announcing.cancel()

    async def _announce(self, web: WebProcess) -> None:
        await web.serves.wait()
        self._has_served = True
        if self._endings:
            after_s = time.time() - self._endings[-1]["at"]
            logger.info("web process serves again", extra={"event": "web_serves_again", "after_s": round(after_s, 2)})
            _say(f"gantry up: the dashboard serves again, {after_s:.1f} s later.")

    def _note(self, ending: Ending) -> None:
        """Why it has to be started again: in our log, on the terminal, and for the next one, which logs it too."""
        self._endings.append({"at": time.time(), "reason": ending.reason, "lived_s": round(ending.lived_s, 1)})
        facts = {"event": "web_process_ended", "reason": ending.reason, "lived_s": round(ending.lived_s, 1)}
        logger.error("web process ended: it is started again, the others serve on", extra=facts)
        _say(f"gantry up: the web process {ending.reason}; brokers serve on, and it is started again.")

    async def _pause(self, delay_s: float) -> bool:
        """Wait before the next start. False: we are asked to stop meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
        return not self._stopping.is_set()

    def _ask_to_stop(self, number: signal.Signals) -> None:
        """The web process stops the others in order and says when it is done; without one we do it ourselves."""
        self._stopping.set()
        if self._web is not None:
            self._web.ask_to_stop(signal.SIGTERM if number == signal.SIGHUP else number)

    def _tell(self, event: Any) -> None:
        if self._web is not None:
            self._web.tell(event)

    def _reap(self) -> None:
        """Every child that has ended: the web process, workers, and whatever was left to us."""
        with contextlib.suppress(ChildProcessError):  # there are no more children
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                code = os.waitstatus_to_exitcode(status)
                if not (self._web is not None and self._web.reaped(pid, code)) and not self._spawner.reaped(pid, code):
                    logger.debug("orphan reaped", extra={"event": "orphan_reaped", "pid": pid})

    async def _end_orphans(self) -> None:
        """Processes that a killed one left behind must not outlive the appliance."""
        for number in (signal.SIGTERM, *[signal.SIGKILL] * ORPHAN_ROUNDS):
            orphans = children_of(os.getpid()) - self._found_here
            for pid in orphans:
                logger.warning("orphan ended", extra={"event": "orphan_ended", "pid": pid, "signal": number.name})
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            for _ in range(ORPHAN_LOOKS):
                if not orphans & children_of(os.getpid()):
                    break
                await asyncio.sleep(ORPHAN_LOOK_S)


def become_subreaper() -> None:
    """Orphans below us are ours to reap, whatever their parents were (Linux; elsewhere it does nothing)."""
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def main() -> int:
    config = ApplianceConfig.from_environment()
    lock = DataFolderLock(config.data)
    try:
        lock.acquire()
    except DataFolderInUse as exc:
        print(f"gantry up: {exc}", file=sys.stderr)
        return 1
    _open_log(config)
    become_subreaper()
    return asyncio.run(_guard(config))


async def _guard(config: ApplianceConfig) -> int:
    return await Guardian(stop_grace_s=config.stop_grace_s, web_hang_s=config.web_hang_s).run()


def _open_log(config: ApplianceConfig) -> None:
    """A log of its own: gantry.log belongs to the web process, and two writers can't rotate one file."""
    path = config.logs_folder / "guardian.log"
    file = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES_MAX, backupCount=1, encoding="utf-8")
    file.setFormatter(logs.FactsFormatter(logs.FORMAT, logs.TIME_FORMAT))
    logging.basicConfig(level=config.log_level, handlers=[file], force=True)
    logging.raiseExceptions = False  # a full disk, or a terminal that is gone, is no reason to write more about it


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read our words is gone
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
