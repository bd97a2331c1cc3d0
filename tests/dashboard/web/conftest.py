"""One running appliance for the tests of the web door, and its administrator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.appliance_process import RunningAppliance
from tests.visitor import Visitor, admin_of


@pytest.fixture(scope="package")
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the appliance of these tests would put temporary files."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="package")
def gantry(tmp_path_factory: pytest.TempPathFactory, temporary_folder: Path) -> Iterator[RunningAppliance]:
    data = tmp_path_factory.mktemp("web") / "data"
    with RunningAppliance(data, environment={"TMPDIR": str(temporary_folder)}) as running:
        yield running


@pytest.fixture(scope="package")
def administrator(gantry: RunningAppliance) -> Visitor:
    return admin_of(gantry)
