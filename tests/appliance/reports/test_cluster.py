"""Reports on a standalone cluster of Spark: a master, and two workers with mounts of their own.

The workers see neither the checkout nor the data folder, but for what a test leaves them: what runs there came along.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.bench.apache_peer import QUICK_START_FLAGS
from appliance.reports.java import Java
from appliance.reports.runs import RunFolder, RunSpec, RunStatus
from appliance.reports.sessions.launcher import Launcher
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log
from tests.conftest import missing, require_tool
from tests.waiting import WITHIN_S, wait_until

ROOT = Path(__file__).parents[3]
LIMIT_S = 1200.0  # of a run: alone it takes 20, and was seen to take more than 300 beside ten that want two cores
NAME_SPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
HIDE = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit 90; shift; done; shift; exec "$@"'
CODE = [str(ROOT / name) for name in ("appliance", "gantrymq", "store")]
pytestmark = pytest.mark.timeout(3 * LIMIT_S)
EXECUTOR = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass
class Cluster:
    """`folder` is seen everywhere, `hidden` by the driver alone."""

    url: str
    folder: Path
    hidden: Path
    launcher: Launcher

    def executors(self) -> list[str]:
        """The workers on which something has run."""
        return sorted({path.parents[1].name for path in self.folder.glob("worker-*/app-*/*")})


@pytest.fixture(scope="module")
def cluster(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_tool("unshare", "workers get mounts of their own")
    if subprocess.run(
        [*NAME_SPACE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    ).returncode:
        missing("the right to mount", "workers must not see the checkout")
    folder, hidden = tmp_path_factory.mktemp("cluster"), tmp_path_factory.mktemp("hidden")
    (folder / "conf").mkdir()
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    variables = {"PATH": os.environ["PATH"], "JAVA_HOME": str(java.home), "SPARK_HOME": str(home)}
    variables |= {"SPARK_CONF_DIR": str(folder / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"}
    variables |= {"SPARK_DAEMON_MEMORY": "256m", "TMPDIR": str(folder)}
    variables["JDK_JAVA_OPTIONS"] = " ".join(QUICK_START_FLAGS)  # executors have them from the workers
    with contextlib.ExitStack() as stack:

        def start(name: str, *words: str, before: Sequence[str] = ()) -> Path:
            log = folder / f"{name}.log"
            listening = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
            command = [*before, str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}", *listening]
            with log.open("wb") as out:
                child = subprocess.Popen([*command, *words[1:]], cwd=folder, env=variables, stdout=out, stderr=out)
            stack.callback(child.wait, WITHIN_S)
            stack.callback(child.terminate)
            return log

        log = start("master", "master.Master")
        wait_until(lambda: re.search(r"Starting Spark master at (\S+)", log.read_text()))
        found = re.search(r"Starting Spark master at (\S+)", log.read_text())
        assert found is not None
        own_mounts = [*NAME_SPACE, "sh", "-c", HIDE, "sh", *CODE, str(hidden), "--"]
        for number in range(2):
            room = ["--cores", "1", "--memory", "600m", "--work-dir", str(folder / f"worker-{number}"), found[1]]
            start(f"worker-{number}", "worker.Worker", *room, before=own_mounts)
        wait_until(lambda: log.read_text().count("Registering worker") == 2)
        launcher = Launcher(folder / "session", is_kept=True)  # all runs share one session, which costs the most
        stack.callback(launcher.close, at_once=True)
        yield Cluster(found[1], folder, hidden, launcher)


def filled(data: Path) -> Path:
    """A data folder with a log of several files."""
    home = data / "brokers" / "broker-a"
    records = [Record(topic=f"t{index % 3}", body=bytes(900), stored_at=NOON + index) for index in range(9_000)]
    write_log(home / "store" / "commitlog", records, file_bytes=1 << 20)
    (home / "broker.properties").write_text("brokerName=broker-a\n")
    return data


def reported(cluster: Cluster, data: Path, lake: str = "") -> tuple[RunFolder, RunStatus]:
    folder = RunFolder.in_data(data, "20261121T120000Z-0a1b2c")
    spec = RunSpec(
        report="traffic", data=str(data), begin_ms=NOON, end_ms=NOON + HOUR_MS, driver_memory="512m",
        master=cluster.url, conf=EXECUTOR, lake=lake, timeout_s=LIMIT_S,
    )  # fmt: skip
    return folder, cluster.launcher.launch(folder, spec)


def test_executors_without_the_checkout_read_the_log_and_count_it(cluster: Cluster) -> None:
    """Twice: the first run reads, both count."""
    data = filled(cluster.folder / "data")
    for ingested in (9_000, 0):
        folder, status = reported(cluster, data)
        assert (status.state, status.ingested_rows) == ("succeeded", ingested), folder.log_path.read_text()[-3000:]
        rows = json.loads(folder.result("json").read_bytes())["rows"]
        assert [(row["topic"], row["messages"]) for row in rows] == [("t0", 3_000), ("t1", 3_000), ("t2", 3_000)]
        shutil.rmtree(folder.path)
    assert cluster.executors() == ["worker-0", "worker-1"]


def test_what_executors_do_not_see_is_named_with_what_to_do(cluster: Cluster) -> None:
    """The brokers' folders, and the lake."""
    unseen = filled(cluster.hidden / "data")
    _, status = reported(cluster, unseen, lake=str(cluster.folder / "lake"))
    assert status.state == "failed" and "every executor needs the brokers' folders" in status.error
    seen = filled(cluster.folder / "other")
    _, status = reported(cluster, seen, lake=str(cluster.hidden / "lake"))
    assert status.state == "failed" and "put the lake where every executor reaches it" in status.error
