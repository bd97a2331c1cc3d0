"""A Java for the tests that need one, and what stands in for S3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from appliance.reports.errors import JavaNotFound
from appliance.reports.java import Java, find_java
from tests.appliance.reports.s3_server import address, s3
from tests.conftest import missing

if TYPE_CHECKING:
    pass


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


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
