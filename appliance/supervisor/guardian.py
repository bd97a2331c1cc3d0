"""The process behind `gantry up`: the parent of all others, small so that it has little that can fail.

It starts the web process (Django, Daphne, and the supervisor that decides what runs) and, at that one's request, the
name server, the brokers and jobs. When the web process dies or hangs, the others go on serving; the next web process
gets the list of running processes and adopts them. When the guardian ends, all processes end: in order after a signal,
and by the kernel's parent-death signal when the guardian is killed. It takes no connections, does not load Django, and
reaps orphans, as the first process of a container must.
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
from appliance.process.process_identity import children_of
from appliance.settings.appliance_config import ApplianceConfig
from appliance.supervisor.backoff import Backoff
from appliance.supervisor.service_manager import READY, STOPPING, ServiceManager
from appliance.supervisor.spawner import Spawner
from appliance.supervisor.web_process import COMMAND, Ending, WebProcess
from gantrymq.timeouts import wait_for_event

logger = logging.getLogger("appliance.supervisor.guardian")  # it runs as __main__

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
START_ATTEMPTS = 3
ENDINGS_KEPT = 20
DELAY_AFTER_SERVING_MAX_S = 1.0  # a web process that has served probably will again; longer delays are for the others
ORPHAN_LOOK_S, ORPHAN_LOOKS = 0.05, 100  # how long a round waits for orphans to end
ORPHAN_ROUNDS = 3  # a killed orphan may leave orphans in turn
LOG_BYTES_MAX = 1 << 20
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Guardian:
    """One run of the appliance. `command` starts the web process."""

    def __init__(self, *, stop_grace_s: float, web_hang_s: float, command: tuple[str, ...] = COMMAND) -> None:
        self._stop_grace_s = stop_grace_s
        self._web_hang_s = web_hang_s
        self._command = command
        self._web: WebProcess | None = None
        self._spawner = Spawner(self._tell)
        self._stopping = asyncio.Event()
        self._service = ServiceManager()
        self._backoff = Backoff()
        self._has_served = False
        self._web_starts = 0
        self._endings: deque[dict[str, Any]] = deque(maxlen=ENDINGS_KEPT)
        self._found_here = children_of(os.getpid())  # exec keeps children: these belong to the shell or script before

    async def run(self) -> int:
        """Run until everything has ended. Returns the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup
                loop.add_signal_handler(number, self._ask_to_stop, number)
        beating = asyncio.create_task(self._service.beat())
        try:
            return await self._keep_web_running()
        finally:
            self._service.tell(STOPPING)
            await self._spawner.stop_all(self._stop_grace_s)
            await self._end_orphans()
            beating.cancel()

    async def _keep_web_running(self) -> int:
        """Run web processes one after the other, until one reports that everything is stopped, or none comes up."""
        while True:
            ending = await self._web_life()
            if ending.finish_code is not None:
                return ending.finish_code
            if self._stopping.is_set():
                # run() stops the rest in order; a new web process would only start everything again
                logger.warning("web process ended while it stopped the others", extra={"reason": ending.reason})
                return 0
            self._note(ending)
            if not self._has_served and self._web_starts >= START_ATTEMPTS:
                print("gantry up: the web process does not start; logs/gantry.log may say why", file=sys.stderr)
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
        self._service.tell(READY)
        if self._endings:
            after_s = time.time() - self._endings[-1]["at"]
            logger.info(
                "web process is running again", extra={"event": "web_serves_again", "after_s": round(after_s, 2)}
            )
            _say(f"gantry up: the dashboard serves again, {after_s:.1f} s later.")

    def _note(self, ending: Ending) -> None:
        """Report why the web process ended: in the log, on the terminal, and to the next one, which logs it too."""
        self._endings.append({"at": time.time(), "reason": ending.reason, "lived_s": round(ending.lived_s, 1)})
        facts = {"event": "web_process_ended", "reason": ending.reason, "lived_s": round(ending.lived_s, 1)}
        logger.error("web process ended: it is started again, the others keep running", extra=facts)
        _say(f"gantry up: the web process {ending.reason}; brokers go on serving, and it is started again.")

    async def _pause(self, delay_s: float) -> bool:
        """Wait before the next start. False: a stop signal came meanwhile."""
        await wait_for_event(self._stopping, delay_s)
        return not self._stopping.is_set()

    def _ask_to_stop(self, number: signal.Signals) -> None:
        """Pass the signal to the web process, which stops the others in order; without one run() stops them."""
        self._stopping.set()
        self._service.tell(STOPPING)
        if self._web is not None:
            self._web.ask_to_stop(signal.SIGTERM if number == signal.SIGHUP else number)

    def _tell(self, event: Any) -> None:
        if self._web is not None:
            self._web.tell(event)

    def _reap(self) -> None:
        """Reap every child that has ended: the web process, workers, and orphans."""
        with contextlib.suppress(ChildProcessError):  # there are no more children
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                code = os.waitstatus_to_exitcode(status)
                if not (self._web is not None and self._web.reaped(pid, code)) and not self._spawner.reaped(pid, code):
                    logger.debug("orphan reaped", extra={"event": "orphan_reaped", "pid": pid})

    async def _end_orphans(self) -> None:
        """End the processes that a killed one left behind: they must not outlive the appliance."""
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
    """Make this process the parent of all orphans below it (Linux; elsewhere it does nothing)."""
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
    """Log to guardian.log: gantry.log is the web process's, and two writers can't rotate one file."""
    path = config.logs_folder / "guardian.log"
    file = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES_MAX, backupCount=1, encoding="utf-8")
    file.setFormatter(logs.FactsFormatter(logs.FORMAT, logs.TIME_FORMAT))
    logging.basicConfig(level=config.log_level, handlers=[file], force=True)
    logging.raiseExceptions = False  # on a full disk each failed line would print a traceback to the terminal


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal is gone
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
