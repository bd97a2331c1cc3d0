"""The fixtures, used by the pages' own example in a pytest of its own, and by themselves."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq import AdminClient
from gantrymq.testing import BrokerNotStarted, broker, running_broker
from tests.docs.pages import ROOT, blocks
from tests.harness import serving


def run_pytest(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:django", *options], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A folder with the page's conftest.py and test."""
    tests = tmp_path / "tests"
    tests.mkdir()
    plugins, test = (block.code for block in blocks(ROOT / "docs" / "sdk.md") if block.language == "py")
    (tests / "conftest.py").write_text(plugins)
    (tests / "test_orders.py").write_text(test)
    (tests / "pytest.ini").write_text("[pytest]\n")
    return tests


def test_the_example_of_the_page_passes_at_a_broker_that_it_starts(example: Path) -> None:
    assert "1 passed" in run_pytest(example)


async def test_the_example_of_the_page_passes_at_a_broker_and_leaves_no_topic(example: Path, tmp_path: Path) -> None:
    async with serving(tmp_path / "broker") as cluster, AdminClient(cluster.namesrv_address) as admin:
        option = ("--gantrymq-name-servers", cluster.namesrv_address)
        assert "1 passed" in await asyncio.to_thread(run_pytest, example, *option)
        assert not [name for name in await admin.topics.names() if name.startswith("test_an_order_arrives")]
        info = await admin.brokers.runtime_info(cluster.broker_address)
        assert int(info["msgPutTotalTodayNow"]) == 1, "it ran elsewhere"


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(BrokerNotStarted, match="flushDiskType"),
        running_broker(tmp_path, {"flushDiskType": "SOMETIMES"}),
    ):
        pass


def test_without_the_appliance_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerNotStarted, match="--gantrymq-name-servers"), running_broker(tmp_path):
        pass
