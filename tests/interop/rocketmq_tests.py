"""RocketMQ's own integration tests (its module `test`) against this broker:

    python -m tests.interop.rocketmq_tests FOLDER

FOLDER is a checkout of apache/rocketmq at the tag rocketmq-all-4.9.7; nothing in it is changed. A copy is compiled
whose `BaseConf` names a running name server and two brokers instead of starting its own; left out is the one class
that starts its own broker with DLedger. Each class runs in a process; what fails is named, with its output in the
folder --output.
"""

from __future__ import annotations

import argparse
import logging
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from appliance.bench.maven import class_path, copied_jars, rocketmqs
from appliance.bench.peer import CLUSTER_NAME
from tests.certificates import authority
from tests.interop.broker_cluster import BrokerCluster
from tests.interop.build_cache import built, digest, tool

NEEDED = (
    *rocketmqs("4.9.7", "broker", "namesrv", "tools"),
    "log4j:log4j:1.2.17",
    "org.apache.tomcat:annotations-api:6.0.53",
    "com.google.truth:truth:0.30",
    "org.mockito:mockito-core:3.10.0",
    "org.assertj:assertj-core:2.6.0",
    "junit:junit:4.13.2",
)
BASE = Path("test/java/org/apache/rocketmq/test/base")
CLASS_TIMEOUT_S = 1_200.0  # the longest waits for messages, several times two minutes
STARTS_ITS_OWN = re.compile(r"        namesrvController = .*?(?=        brokerNum)", re.DOTALL)
NAMES_OURS = "".join(
    f'        {field} = System.getProperty("{field}");\n'
    for field in ("nsAddr", "clusterName", "broker1Name", "broker2Name")
)
PLAIN_AND_TLS = {
    "tls.server.mode": "permissive",
    "tls.server.certPath": str(authority() / "server.pem"),
    "tls.server.keyPath": str(authority() / "server.key"),
}
ROCKETMQ_DEFAULTS = {
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "transactionTimeOut": "6000",
    "transactionCheckInterval": "60000",
    "accessMessageInMemoryMaxRatio": "40",
}
RESULT = re.compile(
    r"^(?:OK \((?P<passed>\d+) tests?\)|Tests run: (?P<run>\d+),  Failures: (?P<failed>\d+))$", re.MULTILINE
)


def compiled(checkout: Path) -> Path:
    """A folder with the classes of the module `test`. Raises ToolError."""
    sources = sorted((checkout / "test" / "src").rglob("*.java"))

    def build(folder: Path) -> None:
        copy = folder / "src"
        shutil.copytree(checkout / "test" / "src", copy)
        shutil.rmtree(copy / BASE / "dledger")
        base = copy / BASE / "BaseConf.java"
        text, changes = STARTS_ITS_OWN.subn(NAMES_OURS, base.read_text())
        assert changes == 1, f"{base} starts its servers otherwise than this program knows"
        base.write_text(text)
        tool(["javac", "-nowarn", "-d", folder, "-cp", class_path(copied_jars(NEEDED)), *copy.rglob("*.java")])
        shutil.copytree(copy / "test" / "resources", folder, dirs_exist_ok=True)

    return built(f"rocketmq-tests-{digest([Path(__file__), *sources])}", build)


def test_classes(folder: Path) -> list[str]:
    """The names of the classes that hold tests, in the order of their names."""
    files = (file for file in sorted((folder / "src" / "test").rglob("*IT.java")) if "@Test" in file.read_text())
    return [".".join(file.relative_to(folder / "src" / "test" / "java").with_suffix("").parts) for file in files]


def run_class(name: str, command: Sequence[str], output: Path) -> tuple[int, int]:
    """How many tests of the class passed, and how many there are; a process that ends without a count failed one."""
    with output.open("w") as log:
        try:
            subprocess.run([*command, name], stdout=log, stderr=log, timeout=CLASS_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return 0, 1
    found = RESULT.search(output.read_text(errors="replace"))
    if found is None:
        return 0, 1
    count = int(found["passed"] or found["run"])
    return count - int(found["failed"] or 0), count


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("checkout", type=Path)
    options.add_argument("--only", nargs="+", default=[], help="ends of class names, such as TLS_IT; otherwise all run")
    options.add_argument("--output", type=Path, help="a folder for what the classes print")
    arguments = options.parse_args()
    logging.getLogger("gantrymq").setLevel(logging.ERROR)  # no word of each look at a server that is starting
    folder = compiled(arguments.checkout)
    wanted = tuple(arguments.only)
    classes = [name for name in test_classes(folder) if not wanted or name.endswith(wanted)]
    passed = total = 0
    with tempfile.TemporaryDirectory() as scratch:
        output = arguments.output or Path(scratch)
        output.mkdir(parents=True, exist_ok=True)
        with BrokerCluster(Path(scratch) / "cluster", properties={**ROCKETMQ_DEFAULTS, **PLAIN_AND_TLS}) as cluster:
            command = ["java", *properties_of(cluster, Path(scratch)), "-cp"]
            command += [f"{folder}:{class_path(copied_jars(NEEDED))}", "org.junit.runner.JUnitCore"]
            for name in classes:
                good, count = run_class(name, command, output / f"{name.rpartition('.')[2]}.log")
                print(f"{good:3} of {count:3}  {name}", flush=True)
                passed, total = passed + good, total + count
    print(f"{passed} of {total} tests passed, {len(classes)} classes")
    return 0 if passed == total else 1


def properties_of(cluster: BrokerCluster, home: Path) -> list[str]:
    """-D options for a class of tests."""
    values = {"nsAddr": cluster.namesrv_address, "clusterName": CLUSTER_NAME, "user.home": str(home)}
    values |= {f"broker{number}Name": name for number, name in enumerate(cluster.names, 1)}
    return [f"-D{key}={value}" for key, value in values.items()]


if __name__ == "__main__":
    sys.exit(main())
