"""What every test may lean on: tools that may be missing, and settings for a Django that touches nothing outside.

A tool the machine lacks is a skip on a developer's machine and a failure in CI, where `CI=true` says that `.ci/run`
has installed everything: a check that quietly stops running is worse than one that fails.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.machine import WORKER_VARIABLE  # before any test, whether Django's settings were first or not
from tests.suite import clock_jumps, long_runs, pauses, reports
from tests.suite.kinds import APACHE_PARAMETER, FIXTURES, ORDER, TESTS, is_alone, kind_of, shared_folder
from tests.suite.shares import share_of
from tests.suite.turns import left_out
from tests.suite.unit_guard import are_brokers_beside, nothing_outside
from tests.waiting import WITHIN_S

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

    from tests.suite.parallel import FilesThenAlone, OwnShares

# What modules that skip themselves without it import; mkdocs for deploy.site_pages.
PACKAGES = ("numpy", "pyarrow", "pyspark", "deltalake", "duckdb", "selenium", "mkdocs")
LEFT_OUT = pytest.StashKey[int]()  # how many this run leaves to other turns
PORT_SHARES = 20  # for as many workers; those beyond share with one of them
PRESSURE_PERCENT_MAX = 15.0  # of the time that somebody had to wait


def missing(what: str, reason: str) -> None:
    """Skip this test aloud because `what` is missing; in CI fail instead. Does not return."""
    sentence = f"{what} is missing: {reason}"
    if _is_ci():
        pytest.fail(f"{sentence} (CI installs everything it needs)", pytrace=False)
    pytest.skip(sentence)


def time_limit(seconds: float) -> float:
    """`seconds`, and six times as many while the machine is busy with other things: then a clock proves little.

    With --clock-jumps or --pauses it proves nothing.
    """
    if clock_jumps.CLOCK or os.environ.get(pauses.VARIABLE):
        return WITHIN_S
    return seconds * 6 if is_busy() else seconds


def is_busy() -> bool:
    """Whether who wants a core or the disk has to wait for it: the load of a minute, and the kernel's pressure of 10 s.

    The first alone is too slow: processes that come in bursts are over before it has noticed.
    """
    if os.getloadavg()[0] > 0.75 * (os.cpu_count() or 1):
        return True
    return any(_pressure(what) > PRESSURE_PERCENT_MAX for what in ("cpu", "io"))


def _pressure(what: str) -> float:
    """Percent of the last ten seconds in which somebody waited; 0 where the kernel does not tell."""
    try:
        text = Path("/proc/pressure", what).read_text(encoding="ascii")
    except OSError:  # also a kernel that was started without it
        return 0.0
    return float(text.partition("avg10=")[2].partition(" ")[0] or 0)


def require_tool(name: str, reason: str) -> Path:
    """The path of the program `name`; without it the test skips on a developer's machine and fails in CI."""
    found = shutil.which(name)
    if found is None:
        missing(name, reason)
    assert found is not None
    return Path(found)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only the modules whose tests are all marked unit")
    parser.addoption(long_runs.OPTION, action="store_true", help="all tests, all examples")
    parser.addoption(
        long_runs.PART, type=long_runs.part_of, default=long_runs.FIRST, metavar="N/M",
        help="which of M turns: together they take every test (default: the first of four)",
    )  # fmt: skip
    parser.addoption(
        clock_jumps.OPTION, metavar="SEED", help="let the clocks of the tests' process jump ahead at random"
    )
    parser.addoption(pauses.OPTION, metavar="SEED", help="stop processes of the run for moments at random")
    parser.addoption("--fuzz-seconds", default="20", help="seconds that tests/fuzz take in all (default 20)")
    parser.addoption("--soak-seconds", default="0", help="how long tests/soak goes on; 0, the default: each fault once")
    parser.addoption("--fuzz-seed", default="1", help="where the seeds of tests/fuzz begin (default 1)")


def pytest_configure(config: pytest.Config) -> None:
    """A run that is told to end cleans up as one that is interrupted: mounts, processes, folders."""
    is_long = config.getoption(long_runs.OPTION)
    os.environ[long_runs.LONG] = long_runs.ALL if is_long else config.getoption(long_runs.PART)
    from appliance.bench.processes import PORTS  # behind tests.machine, which replaces clocks

    if worker := os.environ.get(WORKER_VARIABLE):  # a port is chosen some time before a process of the test takes it
        PORTS.keep_share(int(worker.removeprefix("gw")), PORT_SHARES)
        if config.getoption("xmlpath", None) is None:  # a file of results wants every report
            config.pluginmanager.register(reports)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Modules of tests that import what an extra brings skip themselves without it; in CI that must not happen."""
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if absent and _is_ci():
        raise pytest.UsageError(f"CI installs everything it needs, but not {', '.join(absent)}")
    seed = session.config.getoption(pauses.OPTION)
    if seed is not None and WORKER_VARIABLE not in os.environ:
        os.environ[pauses.VARIABLE] = seed
        has_workers = bool(session.config.getoption("numprocesses", None))
        session.config.add_cleanup(pauses.begin(seed, spared=os.getpid() if has_workers else None))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A fast run does not even import the other modules, nor a worker those of others."""
    if not config.getoption("--fast") or not collection_path.match("test_*.py"):
        return None
    worker: dict[str, object] | None = getattr(config, "workerinput", None)
    if worker is None:
        return True if kind_of(collection_path) != "unit" else None
    number, workers = str(worker["workerid"]).removeprefix("gw"), int(str(worker["workercount"]))
    return None if collection_path in share_of(int(number), workers) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays until the end: no search for garbage has to look at its million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)  # marked before -m chooses, sorted when pytest-django has put its own first
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark every test with its kind; the modules that run alone go last, the long kinds first.

    Of a kind, those that one worker takes together come first: they are what takes longest.
    """
    for item in items:
        kind = _kind_of_item(item)
        if kind != "outside":
            item.add_marker(kind)
    waiting = left_out(items, config.args)
    yield  # -m and -k choose
    out = [item for item in items if item in waiting]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in waiting]
    config.stash[LEFT_OUT] = len(out)
    getattr(config, "workeroutput", {})["left_out"] = len(out)
    items.sort(key=lambda item: _turn_of(item.path))


def _turn_of(module: Path) -> tuple[bool, int, bool]:
    return is_alone(module), ORDER.index(kind_of(module)), shared_folder(module) is None


def _kind_of_item(item: pytest.Item) -> str:
    if not isinstance(item, pytest.Function):
        return kind_of(item.path)
    if hasattr(item, "callspec") and APACHE_PARAMETER in item.callspec.params.values():
        return "apache"
    for fixture in item.fixturenames:
        if fixture in FIXTURES:
            return FIXTURES[fixture]
    return kind_of(item.path, item.originalname)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What is marked unit keeps to itself, its fixtures too."""
    if clock_jumps.CLOCK:
        clock_jumps.CLOCK.begin(item.nodeid)
    if item.get_closest_marker("unit") is None or are_brokers_beside():
        return (yield)
    with nothing_outside(item.path.name):
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesThenAlone | OwnShares:
    from tests.suite.parallel import FilesThenAlone, OwnShares

    return (OwnShares if config.getoption("--fast") else FilesThenAlone)(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Each worker has collected all; one that died tells nothing."""
    if output := getattr(node, "workeroutput", None):
        node.config.stash[LEFT_OUT] = output.get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """A run says what it left out."""
    if not config.getoption("--fast"):
        if count := config.stash.get(LEFT_OUT, 0):
            part = config.getoption(long_runs.PART)
            terminalreporter.write_line(
                f"Expensive tests took turn {part}: {count} were left out. All: {long_runs.OPTION}"
            )
        return
    left_out = Counter(kind_of(path) for path in TESTS.rglob("test_*.py"))
    del left_out["unit"]
    names = {"outside": "other modules with sockets or processes"}
    told = ", ".join(f"{count} {names.get(kind, kind)}" for kind, count in left_out.most_common())
    terminalreporter.write_line(f"Left out, in modules: {told}. All tests: deploy/test --long")


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"
