"""The web process: supervisor, Daphne, sampler and report schedule on one asyncio loop.

`gantry up` has checked the machine and laid out the data folder, has exported the settings, and became the guardian
(`appliance/supervisor/guardian.py`), which started this command. The web side listens first, the workers follow in
order, and when all serve the banner is printed. A signal turns it round: the listener closes, the services end, the
workers stop in reverse order. Any other end of this process leaves the workers as they are, for the next one to adopt.

Daphne brings Twisted's reactor, which runs on the asyncio loop, so everything else here is plain asyncio.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import logging.handlers
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection

from appliance.cli.admin.ha.replicas import begin_records
from appliance.cli.banner import FROM_FILE, banner, ready_line
from appliance.cli.install_reports.main import record_absence_or_readiness
from appliance.cli.install_reports.progress import Progress
from appliance.process import logs
from appliance.process.tasks import Service
from appliance.process.thread_stacks import print_stacks_when_asked
from appliance.process.version import VERSION
from appliance.reports.install_state import STATE_FILE, InstallState, read_state
from appliance.settings.appliance_config import ApplianceConfig
from appliance.supervisor.child import ChildSpec
from appliance.supervisor.gantry_command import gantry_command, gantry_environment
from appliance.supervisor.guardian_link import GuardianLink
from appliance.supervisor.supervisor import HangLimit, StartFailed, Supervisor
from appliance.supervisor.worker_specs import worker_stages
from dashboard.http.log_paths import PathsOnlyFormatter

logger = logging.getLogger(__name__)

SERVICE_RESTART_S = 5.0
EXIT_CRASHED = 70  # sysexits: EX_SOFTWARE
INSTALLER = "install-reports"
REGISTERED_WITHIN_S = 30.0  # after a broker serves; it tries again each second
ELECTED_WITHIN_S = 60.0  # a slave that was away copies first
LOG_BYTES_MAX = 10 << 20
LOGS_KEPT = 5


class Command(BaseCommand):
    help = "Start the appliance: name server, brokers, dashboard, reports (the same as `gantry up`)."
    requires_system_checks: list[str] = []  # they import every page before the first one is asked for

    def handle(self, *args: Any, **options: Any) -> None:
        config: ApplianceConfig = settings.APPLIANCE
        _open_log(config)
        print_stacks_when_asked()
        sys.exit(Appliance(config, GuardianLink.from_environment()).serve())


class Appliance:
    """One life of the web process, until it is told to stop."""

    def __init__(self, config: ApplianceConfig, link: GuardianLink) -> None:
        self._config = config
        self._link = link
        self._supervisor = Supervisor(
            worker_stages(config),
            link,
            logs_folder=config.logs_folder,
            stop_grace_s=config.stop_grace_s,
            hang=HangLimit(config.worker_hang_s, config.client_tls),
        )
        self._has_offered = False  # a link for the first visit; another one would void it
        self._exit_code = 1  # until the end was reached in good order

    def serve(self) -> int:
        """Run until a signal. Returns the exit code."""
        from daphne.server import reactor  # installs the asyncio reactor, so it comes before the application

        from dashboard.asgi import application
        from dashboard.web.server import WebServer

        loop = reactor._asyncioEventloop
        asyncio.set_event_loop(loop)
        tasks: list[asyncio.Task[None]] = []  # the loop keeps weak references only
        server = WebServer(
            application, self._config, lambda: tasks.append(loop.create_task(self._live(server, reactor.stop)))
        )
        gc.freeze()  # no collection need look at what was imported
        gc.enable()  # see dashboard/__main__.py
        if not server.run():
            print(f"gantry up: port {self._config.http_port} can't be opened", file=sys.stderr)
        return self._exit_code

    async def _live(self, server: Any, stop_reactor: Callable[[], None]) -> None:
        """Run the appliance on the loop, and stop the reactor afterwards in any case."""
        stopping = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, _ask_to_stop, stopping)
        try:
            await self._link.open()
            listening = asyncio.create_task(self._link.run(), name="guardian link")
            leaving = asyncio.create_task(self._stop_without_guardian(stopping), name="guardian gone")
            self._exit_code = await self._supervise(server, stopping)
            await self._link.finish(self._exit_code)
            await _cancel(leaving, listening)
        except Exception:
            logger.exception("web process failed", extra={"event": "web_process_failed"})
            print("gantry up: the web process failed; the reason is at the end of logs/gantry.log", file=sys.stderr)
            logging.shutdown()
            os._exit(EXIT_CRASHED)  # at once: what tidies up behind the keepers would stop the workers
        stop_reactor()

    async def _stop_without_guardian(self, stopping: asyncio.Event) -> None:
        """Stop everything when the guardian was killed, so that no process stays behind."""
        await self._link.gone.wait()
        if not stopping.is_set():
            logger.error("guardian process ended: stopping everything", extra={"event": "guardian_gone"})
            stopping.set()

    async def _supervise(self, server: Any, stopping: asyncio.Event) -> int:
        """Returns when it was asked to stop, or the start failed, and everything is stopped."""
        from dashboard.database import state as database
        from dashboard.language.sentences import gettext
        from dashboard.status.processes import attach

        attach(self._supervisor, self._link)
        self._log_endings()
        database.state.why = gettext(database.OPENING)
        opening = asyncio.create_task(asyncio.to_thread(database.prepare), name="database")  # while the workers start
        supervision = asyncio.create_task(self._supervisor.run(), name="supervisor")
        ended = asyncio.create_task(stopping.wait(), name="stop signal")
        services: list[asyncio.Task[None]] = []
        code = 0
        try:
            if await self._all_serve(supervision, ended):
                await opening
                services = [asyncio.create_task(_kept_running(item)) for item in _services(self._offer_first_visit)]
                services += self._install_reports_when_missing()
                announcing = asyncio.create_task(self._announce(), name="announcement")
                await asyncio.wait({announcing, supervision, ended}, return_when=asyncio.FIRST_COMPLETED)
                if announcing.done():
                    await announcing
                    await asyncio.wait({supervision, ended}, return_when=asyncio.FIRST_COMPLETED)
                services.append(announcing)  # a signal came while it waited for the brokers' routes
            if supervision.done():
                await supervision  # it never ends by itself: this raises why
        except StartFailed as exc:
            print(f"gantry up: {exc}\n\n{exc.log_tail}", file=sys.stderr)
            code = 1
        await server.stop_listening()
        await _cancel(*services, ended, supervision)
        await asyncio.wait({opening})  # a thread can't be cancelled
        if not database.state.why:
            await asyncio.to_thread(database.copy_now)
        return code

    def _log_endings(self) -> None:
        """Why there were web processes before this one: they could not say so themselves."""
        for ending in self._link.endings[-1:]:
            facts = {"event": "web_process_follows", "reason": ending["reason"], "lived_s": ending["lived_s"]}
            logger.error("web process follows one that ended", extra=facts | {"starts": self._link.web_starts})

    async def _all_serve(self, supervision: asyncio.Task[None], ended: asyncio.Task[bool]) -> bool:
        """Wait until all workers serve. False: a signal came first, or the supervisor failed."""
        serving = asyncio.create_task(self._supervisor.wait_serving())
        await asyncio.wait({serving, supervision, ended}, return_when=asyncio.FIRST_COMPLETED)
        all_serve = serving.done() and not ended.done()
        await _cancel(serving)
        return all_serve

    async def _announce(self) -> None:
        self._link.tell_serving()
        if self._link.is_resumed:
            self._has_offered = True
            logger.info("web process is running again", extra={"event": "web_serves_again"})
            await self._have_masters_elected()
            return
        await self._print_banner()

    async def _print_banner(self) -> None:
        from dashboard.database.state import state as database

        await self._wait_for_routes()
        await self._have_masters_elected()
        token = await asyncio.to_thread(_setup_token)
        self._has_offered = token is not None
        state = read_state(self._config.reports_folder / STATE_FILE).state
        started_s = time.time() - psutil.Process(self._link.guardian_pid).create_time()
        for sentence in filter(None, (database.set_aside, database.why)):
            print(f"! The dashboard's database: {sentence}", file=sys.stderr, flush=True)
        print(banner(self._config, version=VERSION, token=token, reports=state, started_s=started_s))
        print(ready_line(self._config), flush=True)
        logger.info("appliance is running", extra={"event": "appliance_serves", "started_s": round(started_s, 2)})

    async def _wait_for_routes(self) -> None:
        """READY means that a program's first request finds its way; without that in time the start says so."""
        from dashboard.cluster.gateway import gateway
        from dashboard.live.registration import wait_registered

        addresses = [self._config.broker_address_of(broker) for broker in self._config.broker_processes]
        for address in await wait_registered(gateway(), addresses, REGISTERED_WITHIN_S):
            facts = {"event": "broker_not_registered", "address": address, "waited_s": REGISTERED_WITHIN_S}
            logger.warning("broker is not registered at the name server", extra=facts)
            print(
                f"! The broker {address} is not registered at the name server yet: until it is, programs find no "
                "route to its topics.",
                file=sys.stderr,
                flush=True,
            )

    async def _have_masters_elected(self) -> None:
        """With etcd: its record of each broker is there, and enough members are in sync. Otherwise say why not."""
        for sentence in await begin_records(self._config, ELECTED_WITHIN_S):
            logger.warning("no automatic failover", extra={"event": "no_automatic_failover", "why": sentence})
            print(f"! {sentence}", file=sys.stderr, flush=True)

    def _offer_first_visit(self, is_another: bool) -> None:
        """Print a first-visit link for a database without accounts, if it is new or none was printed yet. Blocking."""
        if (is_another or not self._has_offered) and (token := _setup_token()) is not None:
            self._has_offered = True
            print(f"  First visit  http://{self._config.http_address}/first-run?token={token}", flush=True)

    def _install_reports_when_missing(self) -> list[asyncio.Task[None]]:
        path = self._config.reports_folder / STATE_FILE
        if self._config.attach:  # reports read the stores of brokers on this machine
            return []
        state = record_absence_or_readiness(self._config).state
        if state == "ready" or not self._config.install_reports:
            return []
        if self._link.running(INSTALLER) is None:
            Progress(path).begin(0)  # the page says so before the job has counted the packages
        command = gantry_command("install-reports", "--data", str(self._config.data))
        self._supervisor.add_job(
            ChildSpec(
                name=INSTALLER,
                role="installer",
                command=command,
                environment=gantry_environment(),
                is_service=False,
            )
        )
        return [asyncio.create_task(self._tell_installation(), name="installation of reports")]

    async def _tell_installation(self) -> None:
        """Print each step of the installation on the terminal."""
        path = self._config.reports_folder / STATE_FILE
        told = ""
        while True:
            state = read_state(path)
            text = _installation_text(state)
            if text and text != told:
                print(f"  {text}", flush=True)
                told = text
            if state.state in ("ready", "failed"):
                return
            await asyncio.sleep(0.5)


def _installation_text(state: InstallState) -> str:
    if state.state == "ready":
        return "Reports: ready."
    if state.state == "failed":
        return f"Reports: {state.error}. Try again with `gantry install-reports` ({FROM_FILE})."
    return f"Reports: {state.step} ({state.done + 1} of {state.total})" if state.step else ""


def _setup_token() -> str | None:
    """The token of the first visit, where there is no administrator yet; None too while the database can't be used."""
    from dashboard.database.state import state
    from dashboard.people.first_run import issue_setup_token

    try:
        return None if state.why else issue_setup_token()
    except DatabaseError as exc:
        state.noticed(exc)
        return None
    finally:
        connection.close()  # this thread's own


def _services(on_usable: Callable[[bool], None]) -> list[Service]:
    """What runs beside the pages on this loop."""
    from dashboard.alerts.watch import AlertWatch
    from dashboard.brokers.draining import drains
    from dashboard.database.state import DatabaseCare
    from dashboard.dead_letters.runs import PutBackRuns
    from dashboard.live.sampler import Sampler
    from dashboard.reports.schedule import ReportSchedule
    from dashboard.topics.change_runs import change_runs

    return [Sampler(), AlertWatch(), ReportSchedule(), PutBackRuns(), change_runs, drains, DatabaseCare(on_usable)]


async def _kept_running(service: Service) -> None:
    """Log the failure of a service and start it again: it must not end the web process."""
    while True:
        try:
            await service.run()
        except DatabaseError as exc:  # the database's own lines say more
            facts = {"event": "service_waits", "service": type(service).__name__, "reason": str(exc)}
            logger.warning("service is waiting for the database", extra=facts)
        except Exception:
            logger.exception("service failed", extra={"event": "service_failed", "service": type(service).__name__})
        await asyncio.sleep(SERVICE_RESTART_S)


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel in order, each one ended before the next."""
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


def _ask_to_stop(stopping: asyncio.Event) -> None:
    text = "Still stopping." if stopping.is_set() else "\nStopping; nothing is lost."
    stopping.set()
    with contextlib.suppress(OSError):  # the terminal is gone: stop all the same
        print(text, flush=True)


def _open_log(config: ApplianceConfig) -> None:
    """Everything into logs/gantry.log; the terminal keeps to what a person has to know."""
    path = config.logs_folder / "gantry.log"
    file = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES_MAX, backupCount=LOGS_KEPT, encoding="utf-8")
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.WARNING)
    for handler in (file, terminal):
        handler.setFormatter(PathsOnlyFormatter(logs.FORMAT, logs.TIME_FORMAT))
    logging.basicConfig(level=config.log_level, handlers=[file, terminal], force=True)
