"""S37. Who has to go when there are too many connections; and that a flood of them keeps no broker down."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import websocket

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.web.connections import ConnectionTable
from dashboard.web.limits import CONNECTIONS_MIN, FILES_RESERVED, WebLimits
from tests.appliance_process import RunningAppliance, command_of
from tests.conftest import time_limit
from tests.visitor import Visitor, admin_of, web_process
from tests.waiting import wait_until

FILES_MAX = 300
IDLE_CONNECTIONS = 400
OF_AN_ADDRESS = 16


def table(connections_max: int = 4, per_address_max: int = 2) -> ConnectionTable[str]:
    return ConnectionTable(connections_max=connections_max, per_address_max=per_address_max)


def test_an_address_with_too_many_loses_the_one_that_waited_longest() -> None:
    known = table()
    assert known.enter("a1", "a") is None and known.enter("a2", "a") is None
    found = known.enter("a3", "a")
    assert found is not None and found[0] == "a1" and "one address" in found[1]


def test_in_all_the_one_that_waited_longest_goes_whatever_its_address() -> None:
    known = table()
    for name in ("a", "b", "c", "d"):
        known.enter(name, name)
    known.waits("a")  # its answer has gone out: it waits anew
    found = known.enter("e", "e")
    assert found is not None and found[0] == "b" and "in all" in found[1]


def test_who_is_served_stays_and_the_newcomer_goes() -> None:
    known = table()
    for name in ("a", "b", "c", "d"):
        known.enter(name, name)
        known.is_busy(name)
    found = known.enter("e", "e")
    assert found is not None and found[0] == "e"
    known.leave("e")
    assert known.longest_waiting() is None
    known.waits("c")
    assert known.longest_waiting() == "c"


def test_one_address_displaces_no_other() -> None:
    known = table(connections_max=100, per_address_max=2)
    known.enter("other", "b")
    for number in range(1000):
        found = known.enter(f"a{number}", "a")
        if found is not None:
            assert found[0].startswith("a")
            known.leave(found[0])
    assert len(known) == 3


def test_a_trusted_proxy_counts_in_all_only() -> None:
    known = table(connections_max=3, per_address_max=1)
    assert [known.enter(name, "") for name in ("a", "b", "c")] == [None, None, None]
    assert known.enter("d", "") is not None


def test_what_a_signed_in_account_holds_is_not_counted_for_its_address() -> None:
    known = table(connections_max=8, per_address_max=2)
    for number in range(6):
        assert known.enter(f"tab{number}", "nat") is None
        known.is_busy(f"tab{number}")
        known.is_signed_in(f"tab{number}")
    assert known.enter("stranger1", "nat") is None and known.enter("stranger2", "nat") is None
    found = known.enter("stranger3", "nat")
    assert found is not None and found[0] == "stranger1" and "one address" in found[1]


def test_accounts_leave_a_quarter_of_the_places_to_others() -> None:
    known = table(connections_max=8, per_address_max=1)
    for number in range(7):  # one more than three quarters: the last one counts for its address
        known.enter(f"tab{number}", "nat")
        known.is_busy(f"tab{number}")
        known.is_signed_in(f"tab{number}")
    found = known.enter("stranger", "nat")
    assert found is not None and found[0] == "stranger" and "one address" in found[1]
    known.leave("stranger")
    assert known.enter("other", "elsewhere") is None


def test_nothing_is_kept_of_who_left() -> None:
    known = table()
    for name in ("a", "b"):
        known.enter(name, "x")
        known.is_busy(name)
        known.is_signed_in(name)
        known.leave(name)
        known.leave(name)
        known.waits(name)
        known.is_busy(name)
    assert (len(known), known.longest_waiting()) == (0, None)
    assert not known._counts and not known._waiting_of and not known._signed_in


@pytest.mark.parametrize(
    ("files_max", "connections"), [(65536, 1024), (300, 300 - FILES_RESERVED), (64, CONNECTIONS_MIN)]
)
def test_few_files_mean_few_connections(tmp_path: Path, files_max: int, connections: int) -> None:
    limits = WebLimits.of(ApplianceConfig(data=tmp_path), files_max)
    assert limits.connections_max == connections
    assert limits.connections_per_address_max <= connections // 2
    assert limits.file_number_max < files_max


@contextlib.contextmanager
def idle_connections(address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing, and are opened again when they are closed for others."""
    host, _, port = address.rpartition(":")
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection((host, int(port)), 30)) for _ in range(count)]


def test_idle_connections_keep_a_killed_broker_from_nothing(tmp_path: Path) -> None:
    """400 idle connections, 300 files: the broker comes back, pages answer, the log says why connections went.

    Live pages of a signed-in account, more than an address may have connections, stay live beside them.
    """
    command = ("bash", "-c", f'ulimit -n {FILES_MAX}; exec "$0" -m appliance up "$@"', sys.executable)
    environment = {"GANTRY_HTTP_CONNECTIONS_PER_ADDRESS_MAX": str(OF_AN_ADDRESS)}
    with RunningAppliance(tmp_path / "data", command=command, environment=environment) as gantry:
        visitor = admin_of(gantry)
        pages = [LivePage(visitor) for _ in range(OF_AN_ADDRESS + 4)]
        for page in pages:
            page.shows()
        with idle_connections(gantry.http, IDLE_CONNECTIONS):
            broker = _broker_of(gantry)
            broker.kill()
            again = _broker_of(gantry, but=broker.pid)
            with urllib.request.urlopen(f"http://{gantry.http}/healthz", timeout=time_limit(10)) as answer:
                assert answer.read() == b"ok\n"
            for page in pages:
                page.answers()
            assert web_process(gantry).num_fds() < FILES_MAX - FILES_RESERVED // 2
            assert again.is_running()
        log = (tmp_path / "data" / "logs" / "gantry.log").read_text()
    assert "event=web_connection_displaced" in log and "of one address" in log
    assert "Too many open files" not in log


class LivePage:
    """A signed-in tab that reads all it is sent."""

    def __init__(self, visitor: Visitor) -> None:
        self.got: list[str] = []
        self._socket = visitor.live()
        self._socket.send('{"subscribe": ["overview"]}')
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, websocket.WebSocketException):
            while text := self._socket.recv():
                self.got.append(str(text))

    def shows(self) -> None:
        """It has its first figures."""
        wait_until(lambda: self.got)

    def answers(self) -> None:
        """It is still live."""
        self._socket.send("no request")
        wait_until(lambda: any("not understood" in text for text in self.got))


def _broker_of(gantry: RunningAppliance, *, but: int = 0) -> psutil.Process:
    """The process of the broker, as soon as it takes connections."""
    deadline = time.monotonic() + time_limit(60)
    host, _, port = gantry.broker.rpartition(":")
    while time.monotonic() < deadline:
        for child in psutil.Process(gantry.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                if "broker" in command_of(child) and child.pid != but:
                    socket.create_connection((host, int(port)), 1).close()
                    return child
        time.sleep(0.1)
    raise AssertionError(f"no broker within the time; the log ends:\n{gantry.output[-2000:]}")


def test_without_a_descriptor_left_it_says_so_and_goes_on_at_once(gantry: RunningAppliance) -> None:
    """No back-off: who comes meanwhile is closed, and the next one after it is served."""
    process, log = web_process(gantry), Path(gantry.data) / "logs" / "gantry.log"
    soft, hard = process.rlimit(psutil.RLIMIT_NOFILE)
    before = log.stat().st_size
    host, _, port = gantry.http.rpartition(":")
    used = {int(link.name) for link in Path(f"/proc/{process.pid}/fd").iterdir()}
    deadline = time.monotonic() + time_limit(20)
    process.rlimit(psutil.RLIMIT_NOFILE, (min(set(range(len(used) + 1)) - used), hard))
    try:
        with contextlib.ExitStack() as stack:  # some may get in, where the process has just closed a file
            while "EMFILE" not in log.read_text()[before:] and time.monotonic() < deadline:
                stack.enter_context(socket.create_connection((host, int(port)), time_limit(10)))
                time.sleep(0.05)
    finally:
        process.rlimit(psutil.RLIMIT_NOFILE, (soft, hard))
    with urllib.request.urlopen(f"http://{gantry.http}/healthz", timeout=time_limit(10)) as answer:
        assert answer.read() == b"ok\n"
    told = log.read_text()[before:]
    assert "event=web_server_error" in told and "EMFILE" in told, told
