"""`gantry up` as a whole: what it prints, what it survives, how it stops."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from appliance.own_files import ROOT
from gantrymq import Message, SyncProducer
from gantrymq.errors import GantryError
from tests.appliance_process import RunningAppliance, shared_appliance
from tests.conftest import time_limit
from tests.waiting import WITHIN_S

RSS_BYTES_MAX = 200 << 20
GUARDIAN_RSS_BYTES_MAX = 48 << 20


gantry = shared_appliance()


def send(namesrv: str, text: str = "hello") -> str:
    with SyncProducer(namesrv) as producer:
        return producer.send(Message("up-test", text.encode())).status.name


def answers(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as exc:
        return exc.code


def beginning(path: Path) -> bytes:
    """What a young store holds; the file itself has its full gigabyte from birth."""
    with path.open("rb") as file:
        return file.read(1 << 20)


def test_it_says_once_that_it_is_ready_and_where(gantry: RunningAppliance) -> None:
    assert gantry.output.count("GANTRY READY") == 1
    for text in (gantry.http, gantry.namesrv, gantry.broker, gantry.data):
        assert gantry.output.count(text) >= 2  # once for scripts, once for people


def test_the_link_of_the_first_visit_opens(gantry: RunningAppliance) -> None:
    link = re.search(r"http://\S+/first-run\?token=\S+", gantry.output)
    assert link is not None
    assert answers(link[0]) == 200
    assert answers(f"http://{gantry.http}/first-run?token=guessed") != 200


def test_the_printed_snippet_sends_a_message_as_it_is(gantry: RunningAppliance, tmp_path: Path) -> None:
    snippet = gantry.output.partition("Send a message from Python:")[2].partition("GANTRY READY")[0]
    lines = [line[6:] for line in snippet.splitlines() if line.strip()]
    assert len([line for line in lines if line]) <= 6
    script = "import sys; sys.path.insert(0, sys.argv[1])\n" + "\n".join(lines)
    command = [sys.executable, "-c", script, str(ROOT)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("SEND_OK "), result.stdout + result.stderr


def test_the_web_process_stays_small(gantry: RunningAppliance) -> None:
    answers(f"http://{gantry.http}/")
    rss_bytes = gantry.web.memory_info().rss
    assert rss_bytes < RSS_BYTES_MAX, f"{rss_bytes >> 20} MiB"


def test_the_guardian_is_tiny(gantry: RunningAppliance) -> None:
    guardian = psutil.Process(gantry.process.pid)
    assert guardian.memory_info().rss < GUARDIAN_RSS_BYTES_MAX, f"{guardian.memory_info().rss >> 20} MiB"
    assert not guardian.net_connections("inet")
    loaded = {Path(found.path).name for found in guardian.memory_maps()}
    assert guardian.num_threads() == 1 and not [name for name in loaded if name.startswith("_sqlite3")]


def test_a_killed_broker_is_back_and_serving_within_three_seconds(gantry: RunningAppliance) -> None:
    assert send(gantry.namesrv) == "SEND_OK"
    gantry.workers("broker")[0].kill()
    killed = time.monotonic()
    status = None
    while status != "SEND_OK" and time.monotonic() - killed < WITHIN_S:
        try:
            status = send(gantry.namesrv)
        except GantryError:
            time.sleep(0.05)
    assert status == "SEND_OK"
    assert time.monotonic() - killed < time_limit(3)


def test_a_second_start_on_the_same_folder_is_refused_in_one_sentence(gantry: RunningAppliance) -> None:
    command = [sys.executable, "-m", "appliance", "up", "--data", gantry.data]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert f"is in use by process {gantry.process.pid}" in result.stderr


@pytest.mark.parametrize(
    ("number", "command"),
    [(signal.SIGTERM, ("-m", "appliance", "up")), (signal.SIGINT, (str(ROOT / "manage.py"), "up"))],
)
def test_a_signal_stops_everything_cleanly_and_nothing_is_lost(
    tmp_path: Path, number: signal.Signals, command: tuple[str, ...]
) -> None:
    """However it was started: `manage.py up` is the same command."""
    options, command = ("--brokers", "2", "--proxies", "2"), (sys.executable, *command)
    with RunningAppliance(tmp_path / "data", *options, command=command) as gantry:
        workers = gantry.workers()
        assert len(workers) == 5
        assert send(gantry.namesrv, "keep me") == "SEND_OK"
        assert gantry.stop(number) == 0
        assert not [child for child in workers if child.is_running()]
    store = tmp_path / "data" / "brokers"
    assert not list(store.glob("*/store/abort"))  # what a store leaves when it was not closed
    assert any(b"keep me" in beginning(path) for path in store.glob("*/store/commitlog/*"))
