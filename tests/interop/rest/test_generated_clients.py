"""Clients that generators make of REST's document drive a day: a topic, messages, a search, a reset, alerts.

What the generators install is installed at test time, at pinned versions, and kept in the user's cache folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from appliance.bench.maven import ToolError
from gantrymq import ConsumeResult, Message, SyncProducer, SyncPushConsumer
from tests.appliance_process import ROOT, RunningAppliance
from tests.conftest import missing
from tests.interop.build_cache import built, digest, required_npm_folder, tool
from tests.visitor import Visitor, admin_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
GROUP = "day-group"
DAY_S = 300


class Served(NamedTuple):
    """An appliance, as its programs find it; document: where REST's document lies."""

    url: str
    token: str
    document: Path

    @property
    def arguments(self) -> list[str]:
        return [self.url, self.token, GROUP]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("rest")
    with RunningAppliance(folder / "data") as gantry:
        visitor = admin_of(gantry)
        visitor.submit("/topics/create", {"name": "day", "queues": "1", "perm": "read-write"})
        with SyncProducer(gantry.namesrv, group="shop") as producer:
            producer.send(Message("day", b"{}"))
        handled = []

        def listener(messages: object) -> ConsumeResult:
            handled.append(messages)
            return ConsumeResult.SUCCESS

        consumer = SyncPushConsumer(gantry.namesrv, group=GROUP, listener=listener)
        consumer.subscribe("day")
        with consumer:
            wait_until(lambda: handled)
        users = [sys.executable, "-m", "appliance", "users", "token", "admin", "--scope", "admin"]
        made = subprocess.run([*users, "--data", gantry.data], cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert made.returncode == 0, made.stderr
        document = folder / "openapi.json"
        token = made.stdout.split()[-1]
        answer = Visitor(gantry.url).get("/api/v1/openapi.json", Authorization=f"Bearer {token}")
        assert answer.status == 200, answer
        document.write_text(answer.text)
        yield Served(gantry.url, token, document)


@pytest.fixture(scope="module")
def generator() -> Path:
    """A folder for PYTHONPATH with the generator of Python clients and what its clients need."""
    requirements = HERE / "requirements.txt"

    def build(folder: Path) -> None:
        tool([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "-r", requirements])

    try:
        return built(f"interop-rest-{digest([requirements], sys.version)}", build)
    except ToolError as exc:
        missing("openapi-python-client", str(exc))
        raise


@pytest.fixture(scope="module")
def typescript() -> Path:
    """A folder with openapi-typescript and the compiler in node_modules."""
    return required_npm_folder("interop-rest-typescript", HERE, "the generator of TypeScript clients")


def test_a_python_client_drives_a_day(served: Served, generator: Path, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(generator)}
    said = run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", served.document, "--meta", "none",
         "--output-path", tmp_path / "gantry_client", "--config", config(tmp_path), "--fail-on-warning"],
        tmp_path, environment,
    )  # fmt: skip
    assert "Warning" not in said, said
    shutil.copy(HERE / "day_python.txt", tmp_path / "day.py")  # no module here: its client is not there yet
    said = run([sys.executable, tmp_path / "day.py", *served.arguments], tmp_path, environment)
    assert "a day is over" in said


def test_a_typescript_client_drives_a_day_and_its_types_hold(served: Served, typescript: Path, tmp_path: Path) -> None:
    shutil.copy(HERE / "package.json", tmp_path)
    (tmp_path / "node_modules").symlink_to(typescript / "node_modules")
    tools = tmp_path / "node_modules/.bin"
    # Without the option what has a default must be sent.
    run([tools / "openapi-typescript", served.document, "--default-non-nullable", "false", "-o", "api.d.ts"], tmp_path)
    shutil.copy(HERE / "day_typescript.ts", tmp_path)
    run([tools / "tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--noUncheckedIndexedAccess",
         "--types", "node", "day_typescript.ts"], tmp_path)  # fmt: skip
    assert "a day is over" in run(["node", tmp_path / "day_typescript.js", *served.arguments], tmp_path)


def config(folder: Path) -> Path:
    """No formatter runs over what is generated."""
    path = folder / "config.yml"
    path.write_text(json.dumps({"post_hooks": []}))
    return path


def run(command: list[str | Path], folder: Path, environment: dict[str, str] | None = None) -> str:
    """What it said; the test fails with that when it ended with an error."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=os.environ | (environment or {}),
        capture_output=True, text=True, timeout=DAY_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr
