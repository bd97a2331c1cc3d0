"""A program of a virtual environment that is not activated, on a machine whose `python3` has no such package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.bench.apache_peer import QUICK_START_FLAGS
from appliance.reports.java import Java
from appliance.reports.sessions.spark_process import environment
from tests.appliance.reports.conftest import java as java
from tests.appliance.reports.stores import Record
from tests.gantrymq.contrib.spark.stores import write_store
from tests.source_files import ROOT
from tests.waiting import WITHIN_S

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])
from pyspark.sql import SparkSession
from gantrymq.contrib.spark import GantrySource

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(GantrySource)
print("rows", spark.read.format("gantrymq").option("path", sys.argv[1]).load().count())
spark.stop()
"""


@pytest.mark.parametrize("named", [None, "named"])
def test_tasks_run_in_the_programs_python_unless_one_is_named(java: Java, tmp_path: Path, named: str | None) -> None:
    store, other = tmp_path / "store-folder", tmp_path / "bin"
    write_store(store, [Record(queue_offset=number) for number in range(40)])
    other.mkdir()
    (other / "python3").write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    (other / "python3").chmod(0o700)
    variables = environment(java, tmp_path, tmp_path, local=True, base=dict(os.environ))
    variables |= {"PATH": f"{other}:{os.defpath}", "PYTHONPATH": str(ROOT)}
    variables["JDK_JAVA_OPTIONS"] = " ".join(QUICK_START_FLAGS)
    variables.pop("PYSPARK_PYTHON")
    if named is not None:
        (other / named).write_text(f'#!/bin/sh\ntouch {tmp_path}/was-named\nexec {sys.executable} "$@"\n')
        (other / named).chmod(0o700)
        variables["PYSPARK_PYTHON"] = str(other / named)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(store), str(ROOT)],
        env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=2 * WITHIN_S, check=False,
    )  # fmt: skip
    assert "rows 40" in ran.stdout, ran.stderr[-3000:]
    assert (tmp_path / "was-named").exists() == (named is not None)
