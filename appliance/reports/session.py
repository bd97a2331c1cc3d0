"""A Spark session. sessions/spark_process.py has the variables that must be set before its JVM starts."""

from __future__ import annotations

import os
import socket
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from appliance.reports.errors import ReportError

TASK_MODULES = (
    "appliance/__init__.py",
    "appliance/settings/__init__.py",
    "appliance/settings/lake_place.py",
    "appliance/settings/replaced_file.py",
    "gantrymq/__init__.py",
    "gantrymq/errors.py",
    "gantrymq/contrib/__init__.py",
    "gantrymq/message/__init__.py",
    "gantrymq/message/properties.py",
    "gantrymq/message/topics.py",
)
TASK_ROOMS = ("appliance/reports", "appliance/reports/lake", "gantrymq/contrib/arrow")  # all of their modules


# A run is mostly start-up: with the C1 compiler only, a small run takes 21 s of CPU time instead of 32, and one with
# two million messages 42 instead of 46.
SOON = "-XX:TieredStopAtLevel=1"
# Counting ten million messages is not: the other compiler makes it twice to three times as fast. It gets only what is
# hot by far, so that it has little to do while Spark starts.
FAST = (
    "-XX:Tier4InvocationThreshold=40000 -XX:Tier4MinInvocationThreshold=20000 -XX:Tier4CompileThreshold=100000 "
    "-XX:Tier4BackEdgeThreshold=200000"
)


SOCKETS_PATH_MAX = 64  # of the 107 bytes that the kernel takes, less Spark's name: "/.", a UUID, ".sock"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.hadoop.fs.permissions.umask-mode": "077",  # Hadoop ignores the process's umask
    # The file lists are explicit; above this number Spark would start a job with a task for each path.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # The lake's times are of one calendar, whatever wrote them.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # A starved machine is slow, not dead.
    "spark.network.timeout": "600s",
    "spark.python.authenticate.socketTimeout": "600s",
}


def create_session(
    work_folder: Path,
    *,
    master: str,
    driver_memory: str,
    conf: Mapping[str, str],
    java_options: str = "",
    is_large: bool = False,
) -> SparkSession:
    """A session. The process's environment must come from spark_process.environment.

    is_large: whether it will count so much that this outweighs its start. Raises ReportError when the
    JVM does not start.
    """
    settings = SETTINGS | {
        "spark.driver.memory": driver_memory,
        "spark.local.dir": str(work_folder),
        "spark.sql.warehouse.dir": str(work_folder / "warehouse"),
        "spark.driver.extraJavaOptions": (
            f"-Djava.io.tmpdir={work_folder} -XX:+UseSerialGC {FAST if is_large else SOON} {java_options}".strip()
        ),
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if not _knows_localhost():  # the name that PySpark's own servers listen at
            settings |= _sockets_in(work_folder)
    builder = SparkSession.builder.master(master).appName("gantry report")
    for name, value in (settings | dict(conf)).items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as failure:
        if failure.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise ReportError(
            "Spark's Java process ended before it was ready; the end of the run's log says why. It may have got less "
            "memory than report_memory requests"
        ) from failure
    if not master.startswith("local"):
        session.sparkContext.addPyFile(str(pack_code(work_folder)))
    return session


def _knows_localhost() -> bool:
    """Not so where nothing wrote an /etc/hosts: as in a bare root."""
    try:
        return bool(socket.getaddrinfo("localhost", 0, socket.AF_INET))
    except socket.gaierror:
        return False


def _sockets_in(folder: Path) -> dict[str, str]:
    """Have PySpark use files in place of ports. Raises ReportError where the kernel takes no path that long."""
    if len(os.fsencode(folder)) > SOCKETS_PATH_MAX:
        raise ReportError(
            f"The name localhost does not resolve. Add the line '127.0.0.1 localhost' to /etc/hosts ({folder} is too "
            "long for what Spark can use instead)"
        )
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(folder)}


def death_of_java(wait_s: float = 0.0) -> str:
    """A sentence when this process's JVM has ended without being asked to; else nothing. It may take until `wait_s`."""
    gateway = SparkContext._gateway
    if gateway is None:
        return ""
    try:
        code = gateway.proc.wait(wait_s)
    except subprocess.TimeoutExpired:
        return ""
    how = f"killed by signal {-code}, as machines do that have run out of memory" if code < 0 else f"exit code {code}"
    return (
        f"Spark's Java process ended during the run ({how}); what was committed stays, and the next run continues "
        "there. If it happens again, see the run's log; give the machine more memory or the run less (report_memory)"
    )


def pack_code(folder: Path) -> Path:
    """Write the modules that tasks import as one file for the executors, which need only numpy and pyarrow then."""
    packed = folder / "gantry_tasks.zip"
    root = Path(__file__).resolve().parents[2]
    rooms = (path.relative_to(root).as_posix() for room in TASK_ROOMS for path in (root / room).glob("*.py"))
    names = [*TASK_MODULES, *rooms]
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(root / name, name)
    return packed


def end_session(session: SparkSession, timeout_s: float) -> None:
    """Stop Spark, and have its JVM end by itself, which is when it writes its class archive if it was asked to."""
    session.stop()
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends when its standard input does
    gateway.proc.wait(timeout_s)
    SparkContext._gateway = SparkContext._jvm = None
