"""The wheel as a stranger gets it: alone in a fresh environment, beside a package of theirs that is called `store`."""

from __future__ import annotations

import email
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.harness import LocalCluster

ROOT = Path(__file__).resolve().parent.parent

SEND = """
import json, sys
import store
assert store.OWNER == "a web shop", store
from gantrymq import Message, SyncProducer
import gantrymq
with SyncProducer(sys.argv[1]) as producer:
    result = producer.send(Message("wheel-demo", b"from the wheel", tags="t", keys="k"))
foreign = [name for name in ("appliance", "dashboard", "django", "pyspark") if name in sys.modules]
print(json.dumps({"status": result.status.name, "where": gantrymq.__file__, "foreign": foreign}))
"""


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """The standard output of a command that has to work."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in the checkout."""
    if importlib.util.find_spec("build") is None:
        missing("build", "install deploy/locks/test.lock")
    folder = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for package in ("gantrymq", "store", "appliance", "dashboard"):  # all of them, so that the choice is tested
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "dist", folder, cwd=folder)
    (built,) = (folder / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def stranger(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel, what it asks for, and somebody's `store`."""
    folder = tmp_path_factory.mktemp("stranger")
    if uv := shutil.which("uv"):
        run(uv, "venv", "--python", sys.executable, folder / "venv", cwd=folder)
        run(uv, "pip", "install", "--python", folder / "venv/bin/python", wheel, cwd=folder)
    else:
        run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
        run(folder / "venv/bin/python", "-m", "pip", "install", "--disable-pip-version-check", wheel, cwd=folder)
    (site_packages,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    (site_packages / "store").mkdir()
    (site_packages / "store" / "__init__.py").write_text('OWNER = "a web shop"\n')
    return folder / "venv" / "bin" / "python"


def test_the_wheel_holds_one_package_and_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"gantrymq"}
    assert "gantrymq/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_is_pure_python(wheel: Path) -> None:
    """The broker's compiled fast path is none of the SDK's: no sources of it, nothing compiled, for any machine."""
    with zipfile.ZipFile(wheel) as archive:
        suffixes = {Path(name).suffix for name in archive.namelist() if ".dist-info/" not in name}
        (facts,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        headers = email.message_from_bytes(archive.read(facts))
    assert suffixes == {".py", ".typed"}
    assert headers["Root-Is-Purelib"] == "true"
    assert wheel.name.endswith("-py3-none-any.whl")


def test_a_bare_install_asks_for_nothing_heavy(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        headers = email.message_from_bytes(archive.read(metadata))
    required = headers.get_all("Requires-Dist") or []
    bare = {re.match(r"[\w-]+", item)[0] for item in required if "extra ==" not in item}  # type: ignore[index]
    assert bare == {"orjson"}
    extras = {"appliance", "compression", "django", "fast-path", "faststream", "opentelemetry", "prometheus"}
    extras |= {"reports", "test"}
    assert set(headers.get_all("Provides-Extra") or []) == extras


def test_the_wheel_sends_a_message_beside_a_foreign_store(stranger: Path, tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        told = json.loads(run(stranger, "-c", SEND, cluster.namesrv_address, cwd=tmp_path))
    assert told["status"] == "SEND_OK"
    assert told["foreign"] == []
    assert "site-packages" in told["where"]
    assert str(ROOT) not in told["where"]
