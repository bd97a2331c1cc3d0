"""The wheel as a stranger gets it: alone in a fresh environment, beside a package of theirs that is called `store`.

GANTRY_TEST_WHEEL_PYTHONS=python3.12:python3.13 does so with other interpreters, by hand: each costs some eight seconds.
"""

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

from appliance.bench.apache_peer import QUICK_START_FLAGS
from appliance.reports.java import Java
from deploy.build_wheels import build_sdk
from tests.appliance.reports.conftest import java as java
from tests.conftest import missing
from tests.harness import LocalCluster

ROOT = Path(__file__).resolve().parent.parent

PYTHONS = os.environ.get("GANTRY_TEST_WHEEL_PYTHONS", sys.executable).split(os.pathsep)
SEND = """
import json, sys, time
import store
assert store.OWNER == "a web shop", store
from gantrymq import ConsumeFrom, Message, SyncProducer, SyncPullConsumer
import gantrymq
with SyncProducer(sys.argv[1]) as producer:
    result = producer.send(Message("wheel-demo", b"from the wheel", tags="t", keys="k"))
bodies = []
with SyncPullConsumer(sys.argv[1], group="wheel", consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
    consumer.subscribe("wheel-demo")
    ends_at = time.monotonic() + 200
    while not bodies and time.monotonic() < ends_at:
        bodies = [message.body.decode() for message in consumer.poll()]
foreign = [name for name in ("appliance", "dashboard", "django", "pyspark") if name in sys.modules]
print(json.dumps({"status": result.status.name, "bodies": bodies, "where": gantrymq.__file__, "foreign": foreign}))
"""


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """The standard output of a command that has to work."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    result = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean | (environment or {}), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDK's, as `deploy/build-wheels` builds it."""
    if importlib.util.find_spec("build") is None:
        missing("build", "install deploy/locks/test.lock")
    return build_sdk(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module", params=PYTHONS)
def stranger(wheel: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The Python of an environment that holds the wheel, what it asks for, and somebody's `store`. It is installed
    where no program is on the path: no compiler, either."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "nothing").mkdir()
    bare = {"PATH": str(folder / "nothing"), "CC": str(folder / "no-compiler"), "CXX": str(folder / "no-compiler")}
    if uv := shutil.which("uv"):
        run(uv, "venv", "--python", request.param, folder / "venv", cwd=folder)
        run(uv, "pip", "install", "--python", folder / "venv/bin/python", wheel, cwd=folder, environment=bare)
    else:
        run(request.param, "-m", "venv", folder / "venv", cwd=folder)
        pip = (folder / "venv/bin/python", "-m", "pip", "install", "--disable-pip-version-check")
        run(*pip, wheel, cwd=folder, environment=bare)
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
    assert suffixes == {".md", ".py", ".typed"}
    assert headers["Root-Is-Purelib"] == "true"
    assert wheel.name.endswith("-py3-none-any.whl")


def test_a_bare_install_asks_for_nothing_heavy(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        headers = email.message_from_bytes(archive.read(metadata))
    required = headers.get_all("Requires-Dist") or []
    bare = {re.match(r"[\w-]+", item)[0] for item in required if "extra ==" not in item}  # type: ignore[index]
    assert bare == {"orjson"}
    extras = {"compression", "django", "opentelemetry", "prometheus", "spark"}
    assert set(headers.get_all("Provides-Extra") or []) == extras


def test_the_page_of_the_wheel_has_no_link_that_is_dead_elsewhere(wheel: Path) -> None:
    """A registry shows it without the checkout's files beside it."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        headers = email.message_from_bytes(archive.read(metadata))
    page = str(headers.get_payload())
    assert page.lstrip().startswith("# gantrymq\n")
    assert re.findall(r"\]\((?!https?:)", page) == []


def test_the_wheel_sends_and_receives_a_message_beside_a_foreign_store(stranger: Path, tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        told = json.loads(run(stranger, "-c", SEND, cluster.namesrv_address, cwd=tmp_path))
    assert told["status"] == "SEND_OK"
    assert told["bodies"] == ["from the wheel"]
    assert told["foreign"] == []
    assert "site-packages" in told["where"]
    assert str(ROOT) not in told["where"]


READ_ON_EXECUTORS = """
import importlib.util, json, sys
from pyspark.sql import SparkSession
import gantrymq
from gantrymq.contrib.spark import GantrySource

def seen(number):
    import gantrymq
    return gantrymq.__file__, importlib.util.find_spec("appliance") is None

builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
spark = builder.config("spark.network.timeout", "600s").config("spark.log.level", "ERROR").getOrCreate()
spark.dataSource.register(GantrySource)
options = {"path": sys.argv[1], "columns": "topic,queue_offset,body", "minPartitions": "4"}
frame = spark.read.format("gantrymq").options(**options).load()
told = {"rows": frame.count(), "distinct": frame.distinct().count(), "tasks": frame.rdd.getNumPartitions()}
told["seen"] = spark.sparkContext.parallelize(range(4), 4).map(seen).collect()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver counts, too
spark.stop()
print("TOLD", json.dumps(told | {"executors": executors}))
"""


@pytest.mark.slow
def test_the_wheels_data_source_runs_on_executors_that_have_no_checkout(
    wheel: Path, java: Java, tmp_path: Path
) -> None:
    """Two executors, processes of their own, in an environment of the wheel and other projects' packages."""
    import pyspark

    from tests.appliance.reports.stores import unpack_golden

    store = unpack_golden("rolled_preblank", tmp_path)
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    (site_packages,) = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site_packages)
    packages = Path(pyspark.__file__).parents[1]
    (site_packages / "others.pth").write_text(f"{packages}\n")  # what that folder's own .pth files say is not read
    home = tmp_path / "spark"  # executors write beside Spark's files, which are not the test's
    home.mkdir()
    for path in (packages / "pyspark").iterdir():
        (home / path.name).symlink_to(path)
    python = tmp_path / "venv" / "bin" / "python"
    variables = {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "JDK_JAVA_OPTIONS": " ".join(QUICK_START_FLAGS),
    }
    output = run(python, "-c", READ_ON_EXECUTORS, str(store), cwd=tmp_path, environment=variables)
    (line,) = [line for line in output.splitlines() if line.startswith("TOLD ")]
    told = json.loads(line.removeprefix("TOLD "))
    assert (told["rows"], told["distinct"], told["tasks"]) == (919, 919, 4)
    assert told["executors"] == 2
    assert {(str(site_packages / "gantrymq" / "__init__.py"), True)} == {(file, alone) for file, alone in told["seen"]}
