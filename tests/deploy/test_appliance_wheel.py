"""Both wheels in a fresh environment, without the checkout: `gantry up` starts, shows its pages, takes messages.

The packages that they need are lent by the environment of the tests: nothing is fetched. By hand, with all packages
from the index: GANTRY_TEST_WHEEL_PYTHONS=python3.13:python3.14 (a minute each).
"""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.fast_path.loader import status
from deploy.build_wheels import LEFT_OUT, ROOT, build_appliance, build_sdk
from gantrymq import __version__
from tests.appliance_process import RunningAppliance
from tests.conftest import missing

PYTHONS = os.environ.get("GANTRY_TEST_WHEEL_PYTHONS", sys.executable).split(os.pathsep)
MESSAGES = 100
SEND_AND_READ = f"""
import sys
from gantrymq import ConsumeFrom, Message, SyncProducer, SyncPullConsumer
with SyncProducer(sys.argv[1]) as producer:
    for number in range({MESSAGES}):
        producer.send(Message("wheel-demo", str(number).encode()))
seen = set()
with SyncPullConsumer(sys.argv[1], group="wheel", consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
    consumer.subscribe("wheel-demo")
    while len(seen) < {MESSAGES}:
        seen.update(int(message.body) for message in consumer.poll())
print(sorted(seen) == list(range({MESSAGES})))
"""
LOOK = """
import json, appliance, dashboard, gantrymq, store
from appliance.fast_path.loader import status
from appliance.own_files import default_data
files = [module.__file__ for module in (appliance, dashboard, gantrymq, store)]
print(json.dumps({"files": files, "fast_path": status().is_on, "data": str(default_data())}))
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if not status().is_on:
        missing("the compiled fast path", "a C compiler and Python's headers (gcc python3-dev)")
    folder, site = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("site")
    (site / "index.html").write_text("the documentation")
    return [build_sdk(folder), build_appliance(folder, site)]


@pytest.fixture(scope="module", params=PYTHONS)
def installed(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The `bin` of an environment that has both."""
    folder = tmp_path_factory.mktemp("installed")
    if request.param != sys.executable:
        run(str(ROOT / "deploy" / "build-wheels"), request.param, cwd=ROOT)
        run(request.param, "-m", "venv", str(folder), cwd=folder)
        built = [str(path) for path in (ROOT / "dist").glob("gantrymq*.whl")]
        run(str(folder / "bin" / "pip"), "install", "--quiet", *built, cwd=folder)
        return folder / "bin"
    venv.create(folder, symlinks=True)
    pip = (sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet")
    run(*pip, "--no-index", "--no-deps", *map(str, wheels), cwd=folder)
    (site_packages,) = (folder / "lib").glob("python3*/site-packages")
    lent = Path(pytest.__file__).parents[1]  # the .pth files in it, one of which names the checkout, are not read
    (site_packages / "lent.pth").write_text(f"{lent}\n")
    return folder / "bin"


def run(*command: str, cwd: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def gantry(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAppliance]:
    command = (str(installed / "gantry"), "up")
    with RunningAppliance(
        tmp_path_factory.mktemp("run") / "data", command=command, environment={"PYTHONPATH": ""}
    ) as it:
        yield it


def test_the_appliance_asks_for_the_sdk_of_its_version_and_is_for_one_python(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[1]) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        headers = email.message_from_bytes(archive.read(metadata))
    assert f"gantrymq=={__version__}" in (headers.get_all("Requires-Dist") or [])
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"appliance", "dashboard", "store"}
    assert f"-cp{sys.version_info.major}{sys.version_info.minor}-" in wheels[1].name
    assert re.search(r"-manylinux_2_\d+_", wheels[1].name)  # an index refuses `linux_x86_64`
    assert "dashboard/site/index.html" in names
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]


def test_what_tests_have_made_in_a_package_is_left_out(tmp_path: Path) -> None:
    """mypy's types of the generated code: the wheel of a fresh clone has none."""
    package = tmp_path / "protocol"
    package.mkdir()
    for name in ("service_pb2.py", "service_pb2.pyi"):
        (package / name).touch()
    shutil.copytree(package, tmp_path / "copied", ignore=LEFT_OUT)
    assert [path.name for path in (tmp_path / "copied").iterdir()] == ["service_pb2.py"]


def test_all_of_it_comes_from_the_wheels_with_the_fast_path(installed: Path, tmp_path: Path) -> None:
    told = json.loads(run(str(installed / "python"), "-c", LOOK, cwd=tmp_path))
    assert all(Path(file).is_relative_to(installed.parent) for file in told["files"])
    assert told["fast_path"]
    assert not Path(told["data"]).is_relative_to(installed.parent)


def test_it_starts_and_shows_the_page_of_the_first_visit_and_its_style(gantry: RunningAppliance) -> None:
    with urllib.request.urlopen(f"{gantry.url}/login") as answer:
        page = answer.read().decode()
    assert "GantryMQ" in page
    style = next(word for word in page.replace("'", '"').split('"') if word.startswith("/static/") and ".css" in word)
    with urllib.request.urlopen(gantry.url + style) as answer:
        assert answer.headers.get_content_type() == "text/css"


def test_it_takes_and_gives_messages_of_the_sdk(gantry: RunningAppliance, installed: Path, tmp_path: Path) -> None:
    assert run(str(installed / "python"), "-c", SEND_AND_READ, gantry.namesrv, cwd=tmp_path) == "True\n"
