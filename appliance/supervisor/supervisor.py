"""Start order, restart with back-off, stop in reverse.

Processes belong to stages: every process of a stage must serve before the next stage starts, and the last stage is
stopped first. One `Keeper` manages one process for as long as the supervisor runs: it starts the process, waits until
it serves, and starts it again when it ends, after 0.2 s at first and up to 30 s later. A process that does not serve
when the appliance starts points to an error in the set-up: then `StartFailed` is raised instead of endless restarts.
One that runs and answers nothing is killed (`hang_watch.py`), and so started again.

The processes are the guardian's children (`guardian.py`), so they outlive the supervisor. A supervisor that replaces an
earlier one adopts the running processes, starts the missing ones at once, and does not wait for stages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.supervisor.backoff import Backoff
from appliance.supervisor.child import Child, ChildNotReady, ChildSpec, ending
from appliance.supervisor.guardian_link import GuardianLink
from appliance.supervisor.hang_watch import HangWatch
from appliance.supervisor.log_file import tail
from gantrymq.errors import GantryError
from gantrymq.remoting.tls import TlsConfig

logger = logging.getLogger(__name__)

START_ATTEMPTS = 3
HOLD_LOOK_S = 0.5  # how often a hold file is looked for


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The state of one process, for the dashboard."""

    name: str
    role: str
    pid: int | None
    state: (
        str  # waiting, starting, running, restarting, crash loop, stopping, stopped, held; jobs: running, done, failed
    )
    restarts: int
    started_at: float | None  # seconds since the epoch
    exit_code: int | None  # of the last run that ended
    address: str
    adopted_at: float | None = None  # when this supervisor adopted a process that it did not start


@dataclass(frozen=True, slots=True)
class HangLimit:
    """How long a service may be silent before it is killed, 0: for ever; tls: how it is asked."""

    seconds: float = 0.0
    tls: TlsConfig | None = None


class StartFailed(GantryError):
    """A process did not serve when the appliance started; `log_tail` is the end of its log."""

    def __init__(self, name: str, reason: str, log_path: Path) -> None:
        super().__init__(f"{reason}; its log is {log_path}")
        self.name = name
        self.log_tail = tail(log_path)


class Keeper:
    """Keeps one process running."""

    def __init__(
        self,
        spec: ChildSpec,
        link: GuardianLink,
        *,
        stage: int,
        log_path: Path,
        stop_grace_s: float,
        hang: HangLimit,
        on_change: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.serving = asyncio.Event()  # set while the process serves
        self._link = link
        self._stage = stage
        self._log_path = log_path
        self._stop_grace_s = stop_grace_s
        self._hang = hang
        self._on_change = on_change
        self._backoff = Backoff()
        self._child: Child | None = None
        self._state = "waiting"
        self._restarts = 0
        self._started_at: float | None = None
        self._adopted_at: float | None = None
        self._exit_code: int | None = None
        self._has_served = False
        self._attempts = 0
        self._telling: set[asyncio.Task[None]] = set()

    def status(self) -> ProcessStatus:
        child = self._child
        address = str(child.facts.get("address") or child.facts.get("listen") or "") if child else ""
        return ProcessStatus(
            name=self.spec.name,
            role=self.spec.role,
            pid=child.pid if child and child.is_running else None,
            state=self._state,
            restarts=self._restarts,
            started_at=self._started_at,
            exit_code=self._exit_code,
            address=address or self.spec.address,
            adopted_at=self._adopted_at,
        )

    async def run(self) -> None:
        """Run the process again and again until cancelled; a job runs once."""
        self._learn_of_earlier_lives()
        try:
            while True:
                await self._while_held()
                lived_s = await self._live()
                if self.is_held:
                    continue
                if not self.spec.is_service:
                    self._become("done" if self._exit_code == 0 else "failed")
                    return
                await self._pause(self._backoff.next_delay_s(lived_s))
        finally:
            await self._stop()

    @property
    def is_held(self) -> bool:
        """Whether it is not to run: its broker is drained."""
        return self.spec.hold_file is not None and self.spec.hold_file.exists()

    async def _while_held(self) -> None:
        if not self.is_held:
            return
        running = self._link.running(self.spec.name)
        if running is not None:  # an earlier supervisor's
            return
        self._become("held")
        logger.info("process is held", extra={"event": "process_held", "child": self.spec.name})
        while self.is_held:  # noqa: ASYNC110  # who removes a file sets no event
            await asyncio.sleep(HOLD_LOOK_S)

    async def _stop_when_held(self, child: Child) -> None:
        while not self.is_held:  # noqa: ASYNC110  # who makes a file sets no event
            await asyncio.sleep(HOLD_LOOK_S)
        self._become("stopping")
        await child.stop(self._stop_grace_s)

    def _learn_of_earlier_lives(self) -> None:
        """Take over restarts and exit code from an earlier supervisor, so that the dashboard's counts go on."""
        running, ended = self._link.running(self.spec.name), self._link.ended_unseen(self.spec.name)
        self._has_served = self._link.is_resumed
        if running is not None:
            self._restarts, self._exit_code = running.starts - 1, running.last_exit_code
        elif ended is not None and self.spec.is_service:
            self._restarts, self._exit_code = ended["starts"], ended["exit_code"]
            self._log_end()

    async def _live(self) -> float:
        """Start or adopt the process, and wait for its end. Returns how many seconds it served."""
        self._child = child = Child(self.spec, self._link, stage=self._stage, log_path=self._log_path)
        self._attempts += 1
        self._started_at, self._adopted_at = time.time(), None
        self._become("starting" if self.spec.is_service else "running")
        served_from: float | None = None
        try:
            await child.start()
            self._started_at = child.started_at
            if child.is_adopted:
                self._adopted_at = time.time()
                facts = {"event": "process_adopted", "child": self.spec.name, "pid": child.pid}
                logger.info("process adopted", extra=facts)
            if self.spec.is_service:
                await child.wait_ready()
                served_from = time.monotonic()
                if child.is_adopted and child.started_at is not None:
                    # It has served before it was adopted; otherwise the back-off would take it for a failed start.
                    served_from -= max(0.0, time.time() - child.started_at)
                self._has_served = True
                self._become("running")
                logger.info("process is ready", extra={"event": "process_serves", "child": self.spec.name})
                self.serving.set()
            self._exit_code = await self._until_end(child)
        except (ChildNotReady, OSError) as exc:
            facts = {"event": "process_not_ready", "child": self.spec.name, "reason": str(exc)}
            logger.warning("process does not start", extra=facts)
            self._exit_code = await child.stop(self._stop_grace_s)
            self._give_up_at_start(str(exc))
        self.serving.clear()
        self._log_end()
        self._tell_of_death(child)
        return time.monotonic() - served_from if served_from is not None else 0.0

    async def _until_end(self, child: Child) -> int | None:
        """Wait for the end of the process; one that answers nothing any more is killed, one that is held is stopped."""
        listen, name = child.facts.get("listen"), self.spec.name
        watches: list[asyncio.Task[None]] = []
        if self.spec.is_service and listen and self._hang.seconds:
            watches.append(asyncio.create_task(self._kill_when_hung(child, listen), name=f"hang watch of {name}"))
        if self.spec.hold_file is not None:
            watches.append(asyncio.create_task(self._stop_when_held(child), name=f"hold watch of {name}"))
        try:
            return await child.wait()
        finally:
            for task in watches:
                task.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def _kill_when_hung(self, child: Child, listen: str) -> None:
        assert child.pid is not None
        watch = HangWatch(
            listen, child.pid, limit_s=self._hang.seconds, tls=self._hang.tls, speaks_http=self.spec.speaks_http
        )
        try:
            await watch.until_hung()
        except Exception:  # a bug in watching must not end what is watched
            logger.exception("no longer watched", extra={"event": "hang_watch_failed", "child": self.spec.name})
            return
        facts = {"event": "process_hangs", "child": self.spec.name, "pid": child.pid, "silent_s": self._hang.seconds}
        logger.error("process does not answer: killed, it is started again", extra=facts)
        child.kill()

    def _tell_of_death(self, child: Child) -> None:
        """Not of one whose exit code is unknown: without the guardian no exit was reaped."""
        if self.spec.on_death is not None and child.exit_code is not None and child.pid is not None:
            telling = asyncio.create_task(
                self.spec.on_death(child.pid, child.started_ticks), name=f"death of {self.spec.name}"
            )
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    def _give_up_at_start(self, reason: str) -> None:
        if self.spec.is_service and not self._has_served and self._attempts >= START_ATTEMPTS:
            raise StartFailed(self.spec.name, reason, self._log_path)

    def _log_end(self) -> None:
        level = logging.INFO if not self.spec.is_service and self._exit_code == 0 else logging.WARNING
        facts = {"event": "process_ended", "child": self.spec.name, "exit_code": self._exit_code}
        if self._exit_code is not None and self._exit_code < 0:
            facts["how"] = ending(self._exit_code)
        logger.log(level, "process ended", extra=facts)

    async def _pause(self, delay_s: float) -> None:
        self._restarts += 1
        self._become("crash loop" if self._backoff.is_crash_loop else "restarting")
        if self._backoff.is_crash_loop:
            facts = {"event": "crash_loop", "child": self.spec.name, "in_a_row": self._backoff.failures}
            logger.error(
                "process keeps ending: its log has the reason",
                extra=facts | {"next_try_s": delay_s, "log": str(self._log_path)},
            )
        await asyncio.sleep(delay_s)

    async def _stop(self) -> None:
        self.serving.clear()
        for task in self._telling:
            task.cancel()
        child = self._child
        if child is not None and child.is_running:
            self._become("stopping")
            self._exit_code = await child.stop(self._stop_grace_s)
            facts = {"event": "process_stopped", "child": self.spec.name, "exit_code": self._exit_code}
            logger.info("process stopped", extra=facts)
        if self.spec.is_service:
            self._become("stopped")

    def _become(self, state: str) -> None:
        self._state = state
        self._on_change()


class Supervisor:
    """Runs stages of processes. `run` ends by cancellation, and only after every process has ended."""

    def __init__(
        self,
        stages: Sequence[Sequence[ChildSpec]],
        link: GuardianLink,
        *,
        logs_folder: Path,
        stop_grace_s: float = 20.0,
        hang: HangLimit | None = None,
    ) -> None:
        self.changed = asyncio.Event()  # set at every change of a state; the waiting task clears it
        self._link = link
        self._logs_folder = logs_folder
        self._stop_grace_s = stop_grace_s
        self._hang = hang or HangLimit()
        self._stages = [[self._keeper(spec, index) for spec in stage] for index, stage in enumerate(stages)]
        self._tasks: dict[Keeper, asyncio.Task[None]] = {}
        self._all_serve = asyncio.Event()
        self._wanted: asyncio.Queue[Keeper] = asyncio.Queue()

    def snapshot(self) -> list[ProcessStatus]:
        """The state of every process, in start order."""
        return [keeper.status() for stage in self._stages for keeper in stage]

    async def wait_serving(self) -> None:
        """Return when every service of every stage has served; at once if that was so under an earlier supervisor.

        Wait for `run` at the same time: it may fail.
        """
        await self._all_serve.wait()

    def add_job(self, spec: ChildSpec) -> None:
        """Start a job beside the services; it is stopped first when the supervisor ends."""
        keeper = self._keeper(spec, len(self._stages))
        self._stages.append([keeper])
        self._wanted.put_nowait(keeper)

    async def run(self) -> None:
        try:
            for stage in list(self._stages):
                for keeper in stage:
                    self._start(keeper)
                if not self._link.is_resumed:
                    await self._until_stage_serves(stage)
            self._all_serve.set()
            await self._watch()
        finally:
            await self._stop_all()

    def _keeper(self, spec: ChildSpec, stage: int) -> Keeper:
        return Keeper(
            spec,
            self._link,
            stage=stage,
            log_path=self._logs_folder / f"{spec.name}.log",
            stop_grace_s=self._stop_grace_s,
            hang=self._hang,
            on_change=self.changed.set,
        )

    def _start(self, keeper: Keeper) -> None:
        self._tasks[keeper] = asyncio.create_task(keeper.run(), name=f"keeper of {keeper.spec.name}")

    async def _until_stage_serves(self, stage: Sequence[Keeper]) -> None:
        """Wait for all services of the stage. Raises the error of a keeper that fails meanwhile."""
        serving: asyncio.Future[Any] = asyncio.ensure_future(
            asyncio.gather(
                *(keeper.serving.wait() for keeper in stage if keeper.spec.is_service and not keeper.is_held)
            )
        )
        try:
            while not serving.done():
                waited: list[asyncio.Future[Any]] = [serving, *self._tasks.values()]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                self._collect_ended()
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving

    async def _watch(self) -> None:
        """Start requested jobs. Raises the error of a keeper that fails."""
        while True:
            asked: asyncio.Future[Keeper] = asyncio.ensure_future(self._wanted.get())
            try:
                waited: list[asyncio.Future[Any]] = [asked, *self._tasks.values()]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if asked.done():
                    self._start(asked.result())
                self._collect_ended()
            finally:
                asked.cancel()

    def _collect_ended(self) -> None:
        for keeper, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[keeper]
                task.result()

    async def _stop_all(self) -> None:
        for stage in reversed(self._stages):
            tasks = [self._tasks[keeper] for keeper in stage if keeper in self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
