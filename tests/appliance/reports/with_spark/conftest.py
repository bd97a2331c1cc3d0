"""A real Spark session, started once for all of these modules; its JVM ends with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from appliance.reports.java import Java
from appliance.reports.sessions.spark_process import environment
from tests.waiting import WITHIN_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
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
