"""One Spark session as this project wants it. What must stand before its JVM starts is in launcher.environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession


def create_session(work_folder: Path, *, master: str, driver_memory: str, conf: Mapping[str, str]) -> SparkSession:
    """A session for one run. The process's environment must come from launcher.environment."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": driver_memory,
        "spark.local.dir": str(work_folder),
        "spark.sql.warehouse.dir": str(work_folder / "warehouse"),
        "spark.hadoop.fs.permissions.umask-mode": "077",  # Hadoop sets modes by itself, whatever the process's umask
        # Our file lists are explicit; above this number Spark would start a job with a task for each path.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # The newest batches are the point of a run: one that adds nothing is not needed.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # A run is mostly start-up: with the first compiler alone a small one costs 21 s of CPU time instead of 32, and
        # one of two million messages 42 instead of 46.
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={work_folder} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master(master).appName("gantry report")
    for name, value in (settings | dict(conf)).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
