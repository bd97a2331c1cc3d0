"""A Django project with a broker: sending, the outbox with its relays and admin page, `manage.py consume`.

GANTRY_TEST_DJANGO_DATABASE='{"ENGINE": "django.db.backends.postgresql", "NAME": …}' runs the same on another database,
which must be empty: by hand, as the runs against Apache's brokers are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gantrymq import Message, Producer
from tests.harness import serving
from tests.source_files import ROOT
from tests.waiting import WITHIN_S, until

DATABASE = os.environ.get("GANTRY_TEST_DJANGO_DATABASE")
OUTBOX = (
    '{"REFUSALS_MAX": 2, "RETRY_FIRST_S": 3600, "RETRY_MAX_S": 3600, "POLL_S": 0.05, "SEND_TIMEOUT_S": 60, "BATCH": 20}'
)
PROJECT = Path(__file__).parent / "project"
RELAYS = 3 if DATABASE else 2


@dataclass
class Project:
    """A copy of `project/`, and the broker it talks to."""

    folder: Path
    name_servers: str

    async def begin(self, *command: str, output: Path | None = None, slow_s: float = 0) -> asyncio.subprocess.Process:
        """Start `python COMMAND` in the project."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONUNBUFFERED": "1",
            "SHOP_NAME_SERVERS": self.name_servers,
            "SHOP_OUTBOX": OUTBOX,
            "SHOP_SLOW_S": str(slow_s),
        }
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        if DATABASE:
            environment["SHOP_DATABASE"] = DATABASE
        with contextlib.ExitStack() as stack:
            into = asyncio.subprocess.PIPE if output is None else stack.enter_context(output.open("wb"))
            return await asyncio.create_subprocess_exec(
                sys.executable, *command, cwd=self.folder, env=environment, stdout=into,
                stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip

    async def told(self, *command: str) -> str:
        """What a command prints that has to work."""
        process = await self.begin(*command)
        try:
            async with asyncio.timeout(WITHIN_S):
                out, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, out.decode()
        return out.decode()

    async def do(self, *scenarios: str) -> None:
        """Some of shop/scenarios.py."""
        assert (await self.told("-m", "shop.scenarios", *scenarios)).endswith("OK\n")


@contextlib.asynccontextmanager
async def ended(process: asyncio.subprocess.Process) -> AsyncIterator[None]:
    """Whatever happens, it ends with the block; told and not killed, for it may have a child."""
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


@pytest.fixture
async def project(tmp_path: Path) -> AsyncIterator[Project]:
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    async with serving(tmp_path / "broker", broker={"auto_create_topic_enable": False}) as cluster:
        yield Project(folder, cluster.namesrv_address)


async def test_messages_of_a_project_follow_its_transactions(project: Project) -> None:
    """On commit and by the outbox: order by key, back-off, the admin page, bounds, and relays at the same time."""
    await project.do("prepare", "committing", "failing", "bounded", "fill")
    relays = await asyncio.gather(*(project.told("manage.py", "relay_outbox", "--once") for _ in range(RELAYS)))
    await project.do("sent_once_in_order")
    locks = "a message is locked" if DATABASE else "this database (sqlite) can't lock rows"
    assert all(locks in told for told in relays)
    assert sum(int(told.splitlines()[-1].split()[0]) for told in relays) == 200


async def test_consumers_of_a_project_start_anew_and_end_in_order(project: Project, tmp_path: Path) -> None:
    await project.do("prepare")
    output = tmp_path / "output.txt"
    async with Producer(project.name_servers) as producer:
        process = await project.begin("manage.py", "consume", "--reload", output=output, slow_s=0.5)
        async with ended(process):
            await until(lambda: "shop-returned consumes returned" in output.read_text())
            await producer.send(Message("placed", b"one"))
            await until(lambda: "consumed one" in output.read_text())
            source = project.folder / "shop" / "consumers.py"
            source.write_text(source.read_text().replace('"consumed"', '"took"'))
            await until(lambda: output.read_text().count("shop-placed consumes placed") == 2)
            await producer.send(Message("placed", b"slow"))
            await until(lambda: "begins slow" in output.read_text())
            process.send_signal(signal.SIGTERM)  # in the middle of a call, which may end
            async with asyncio.timeout(WITHIN_S):
                assert await process.wait() == 0, output.read_text()
    told = output.read_text()
    assert "took slow" in told
    assert told.count("begins one") == 1, "what was handled was committed"
    assert "Traceback" not in told
