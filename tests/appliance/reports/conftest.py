"""A real Spark session for the modules that need one: started once a module, its JVM ended with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from appliance.reports.errors import JavaNotFound
from appliance.reports.java import Java, find_java
from appliance.reports.sessions.spark_process import environment
from tests.appliance.reports.s3_server import address, s3
from tests.conftest import missing
from tests.waiting import WITHIN_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


__all__ = ["address", "s3"]


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Java:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        missing("pyspark", "the report stack is not installed")
    try:
        return find_java(tmp_path_factory.mktemp("jre"))
    except JavaNotFound as reason:
        missing("java", str(reason))
        raise


@pytest.fixture(scope="module")
def spark(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from appliance.reports.session import create_session, end_session

    work = tmp_path_factory.mktemp("spark")
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment(java, work, work, local=True, base=before))
    session = create_session(work, master="local[2]", driver_memory="512m", conf={})
    try:
        yield session
    finally:
        end_session(session, WITHIN_S)
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
