"""The single file where nothing else is: a read-only root with glibc's files, another user, no HOME, no Python."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from appliance.bench.maven import ToolError
from gantrymq import Message, SendStatus, SyncAdminClient, SyncProducer
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance.fast_path.compiling import slow_ways_here
from tests.appliance_process import START_CPU_S, RunningAppliance
from tests.conftest import missing, require_tool
from tests.deploy.bare_root import BareRoot
from tests.docs.shell_lines import LINES
from tests.interop.clients import JavaClient
from tests.interop.podman import Podman
from tests.visitor import Visitor, first_run_token
from tests.waiting import wait_until

# The first of them builds the file, on a machine with much other work in some minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
CONTAINER = ROOT / "deploy" / "container"
GLIBC = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1"]
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
UNCHECKED = b"\1\0\0\0"  # the flags of byte code that is not compared with its source
MESSAGES = 1000
USER = "4321"


@pytest.fixture(scope="module")
def file() -> Path:
    """dist/gantry, made of kept parts: some seconds on a machine that has built one before."""
    for tool in ("go", "mvn"):
        require_tool(tool, "the single file is built with it")
    build()
    return ROOT / "dist" / "gantry"


def build(*options: str | Path) -> None:
    done = subprocess.run([ROOT / "deploy" / "build-binary", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_build_from_nothing_has_the_same_bytes(file: Path, tmp_path: Path) -> None:
    """Nothing kept, another folder, another time: not even the interpreter's tree is the first one's."""
    again = tmp_path / "gantry"
    build("--cache", tmp_path / "kept", "--output", again)
    assert again.read_bytes() == file.read_bytes()


def test_reports_come_from_their_file_and_are_made_without_a_network(file: Path, tmp_path: Path) -> None:
    """As those of a release: half a gigabyte of real packages. Spark wants a shell, numpy the machine's libstdc++."""
    if os.geteuid() != 0:
        missing("root", "only root takes the network away: run these tests with sudo")
    done = subprocess.run(
        [ROOT / "deploy" / "build-reports", "--output", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (packed,) = tmp_path.glob("gantrymq-reports-*.tar")
    alone = ("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "enter")
    gantry = ("env", "-i", "PATH=/usr/bin:/bin", f"GANTRY_UNPACK={tmp_path / 'trees'}", str(file))
    data = tmp_path / "data"
    with RunningAppliance(data, command=(*gantry, "up")) as running:
        send(running, 10)
    for words in ("install-reports", "--from", packed), ("report", "traffic"):
        done = subprocess.run([*alone, *gantry, *words, "--data", data], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "10 messages" in done.stdout and "FromPython" in done.stdout


@pytest.fixture(scope="module")
def bare_root(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bare")
    for name in ("lib64", "lib/x86_64-linux-gnu", "proc", "dev", "tmp", "data", "trees"):
        (root / name).mkdir(parents=True)
    shutil.copy(LOADER, root / "lib64")
    for name in GLIBC:
        shutil.copy(Path("/lib/x86_64-linux-gnu") / name, root / "lib/x86_64-linux-gnu")
    shutil.copy(file, root / "gantry")
    return root


# Each program replaces the one before: what the test starts is the launcher itself, and then the guardian.
ENTER = """
set -e
root=$1 data=$2 trees=$3; shift 3
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/tmp"
mkdir -p "$root$data" # behind those mounts, which would hide it: it may be below /tmp
mount --bind "$data" "$root$data"
mount --bind "$trees" "$root/trees"
mount -o remount,bind,ro "$root"
chown -R USER:USER "$data" "$trees"
if [ -n "$ALONE" ]; then ip link set lo up; fi
exec env -i GANTRY_UNPACK=/trees /usr/sbin/chroot --userspec=USER:USER --groups= "$root" /gantry "$@"
""".replace("USER", USER)


class Machine:
    """What of a machine outlives a process there: a data folder, and a folder with what was unpacked."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.data, self.trees = folder / "data", folder / "trees"
        self._root = root
        self._programs = "/trees/", f"{root}/trees/"  # seen from here: by the mount's path, or by the root's
        for place in (self.data, self.trees, root / str(self.data)[1:]):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in [root / str(self.data)[1:], *(root / str(self.data)[1:]).parents]:
            if place.is_relative_to(root):
                place.chmod(0o755)

    def command(self, *, no_network: bool = False) -> tuple[str, ...]:
        """The start of a command line that runs the file there. The data folder has its path of outside."""
        alone = ("--net",) if no_network else ()
        script = f"ALONE={'yes' if no_network else ''}\n{ENTER}"
        folders = (str(self._root), str(self.data), str(self.trees))
        return ("unshare", "--mount", "--propagation=private", *alone, "sh", "-c", script, "enter", *folders)

    def run(self, *words: str, no_network: bool = False) -> subprocess.CompletedProcess[str]:
        command = [*self.command(no_network=no_network), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def processes(self) -> list[psutil.Process]:
        """Those that run from what was unpacked."""
        found = []
        for process in psutil.process_iter(["exe", "status"]):
            is_ours = (process.info["exe"] or "").startswith(self._programs)
            if is_ours and process.info["status"] != psutil.STATUS_ZOMBIE:  # ended: its parent has not asked yet
                found.append(process)
        return found


@pytest.fixture
def machine(bare_root: Path, tmp_path: Path) -> Iterator[Machine]:
    if os.geteuid() != 0:
        missing("root", "only root makes a root folder: run these tests with sudo")
    require_tool("unshare", "it gives the single file mounts of its own")
    made = Machine(bare_root, tmp_path)
    yield made
    wait_until(lambda: not made.processes())


def test_every_command_works_from_the_one_file_and_nothing_else_is_there(machine: Machine) -> None:
    for words in ("version", "admin --help", "store --help", "bench --help", "users --help", "broker --help"):
        done = machine.run(*words.split(), no_network=True)
        assert done.returncode == 0, done.stderr
    assert re.search(r"fast path: on \(Cython .*clang", machine.run("version").stdout)
    (tree,) = (path for path in machine.trees.iterdir() if path.is_dir())
    assert not list(tree.rglob("*.so.new")) and (tree / "bin" / "python3").exists()
    assert not [path for path in tree.rglob("*.pyc") if path.read_bytes()[4:8] != UNCHECKED]  # compiled at each start


def test_the_machines_libraries_load_beside_its_packages(machine: Machine) -> None:
    """As numpy's do, in reports: libstdc++ wants the machine's own libgcc_s, which some of the packages load, too."""
    machine.run("version")
    (tree,) = (path for path in machine.trees.iterdir() if path.is_dir())
    words = "import pydantic_core, ctypes; ctypes.CDLL('libstdc++.so.6')"
    done = subprocess.run([tree / "bin" / "python3", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_its_fast_path_computes_by_this_processors_instructions(machine: Machine) -> None:
    """The compiler of the file, and the libraries that it brings, are others than a checkout's."""
    machine.run("version")
    (tree,) = (path for path in machine.trees.iterdir() if path.is_dir())
    words = "from appliance.fast_path.loader import load; print(load().slow_ways())"
    done = subprocess.run([tree / "bin" / "python3", "-P", "-c", words], capture_output=True, text=True, check=False)
    assert done.stdout == f"{slow_ways_here()}\n", done.stderr


def test_it_starts_without_a_network_and_a_killed_start_goes_on(machine: Machine) -> None:
    """Killed while it unpacks; then it becomes ready, though nothing can be fetched."""
    first = subprocess.Popen([*machine.command(), "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: any(machine.trees.glob("*.unfinished/*")))
    first.kill()
    first.wait()
    with RunningAppliance(machine.data, command=(*machine.command(no_network=True), "up")) as gantry:
        assert "unpacking" in gantry.output
    assert not list(machine.trees.glob("*.unfinished"))


def test_pages_live_values_and_clients_work_and_a_kill_leaves_nothing(machine: Machine, tmp_path: Path) -> None:
    java = java_client(tmp_path)
    with RunningAppliance(machine.data, command=machine.command()) as gantry:  # without a command: `gantry up`
        look_around(gantry)
        send(gantry, MESSAGES)
        send_by_java(gantry, java)
        running = machine.processes()
        assert len(running) > 3  # guardian, web process, name server, broker
        for process in running:
            process.send_signal(signal.SIGKILL)
        wait_until(lambda: not machine.processes())
    with RunningAppliance(machine.data, command=(*machine.command(), "up")) as gantry:
        assert "unpacking" not in gantry.output
        assert gantry.cpu_s() < START_CPU_S
        send(gantry, 1)
        assert "FromJava" in machine.run("admin", "topics", "list", "-n", gantry.namesrv).stdout
        gantry.process.send_signal(signal.SIGKILL)  # the guardian alone: the others end with it
        wait_until(lambda: not machine.processes())


def send(gantry: RunningAppliance, count: int) -> None:
    with SyncProducer(gantry.namesrv) as producer:
        for number in range(count):
            assert producer.send(Message("FromPython", b"%d" % number)).status is SendStatus.SEND_OK


def java_client(folder: Path) -> JavaClient:
    for tool in ("java", "javac", "mvn"):
        require_tool(tool, "it runs the Java client")
    try:
        return JavaClient(folder)
    except ToolError as exc:
        missing("the Java client", str(exc))
        raise


def send_by_java(gantry: RunningAppliance, java: JavaClient) -> None:
    """As many messages from Java, and to Java."""
    topic = "FromJava"
    with SyncAdminClient(gantry.namesrv) as admin:
        admin.topics.create(TopicConfig(topic))
    with java.consume(gantry.namesrv, topic, topic) as consumer:
        consumer.wait_started()
        with java.produce(gantry.namesrv, topic, MESSAGES) as producer:
            producer.wait_done()
            assert len(producer.sent()) == MESSAGES
        consumer.wait_for(lambda: len({got.number for got in consumer.got()}) >= MESSAGES, "every message")


def look_around(gantry: RunningAppliance) -> None:
    """The page to log in with, its files, and the first values of the live socket."""
    visitor = Visitor(gantry.url)
    page = visitor.get("/login")
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    assert page.status == 200 and len(files) > 4
    chinese = visitor.get("/login", Accept_Language="zh-CN").text
    assert '<html lang="en"' in page.text and '<html lang="zh-CN"' in chinese and "登录" in chinese
    assert {visitor.get(path).status for path in files} == {200}
    visitor.become_admin(first_run_token(gantry.output))
    live = visitor.live()
    live.send(json.dumps({"subscribe": ["overview"]}))
    assert "overview" in str(live.recv())
    live.close()


@pytest.fixture
def podman() -> Iterator[Podman]:
    with tempfile.TemporaryDirectory(prefix="podman-", dir="/tmp") as folder:  # pytest's is too long for Podman
        made = Podman(Path(folder))
        yield made
        made.close()


def test_the_pages_command_builds_an_image_and_it_serves_as_the_compose_file_confines_it(
    file: Path, podman: Podman, tmp_path: Path
) -> None:
    """Without Docker and a registry: Podman reads the same Dockerfile, and its Debian is of this machine's packages."""
    debian, packed = BareRoot(tmp_path / "debian", "apt"), tmp_path / "debian.tar"
    (first,) = re.findall(r"^FROM (\S+)$", (CONTAINER / "Dockerfile").read_text(), re.MULTILINE)
    subprocess.run(["tar", "--create", f"--file={packed}", f"--directory={debian.path}", "."], check=True)
    podman("import", packed, f"docker.io/library/{first}")
    podman.require_containers(first)
    (line,) = (line.command for line in LINES if line.command.startswith("docker build "))
    podman("build", "--pull=never", "--layers=false", "--format=docker", "--isolation=chroot", *shlex.split(line)[2:])
    service = yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]["gantrymq"]
    confined = [f"--cap-drop={name}" for name in service["cap_drop"]]
    confined += [f"--security-opt={name}" for name in service["security_opt"]]
    confined += [f"--tmpfs={path}" for path in service["tmpfs"]] + ["--read-only"] * service["read_only"]
    confined += ["--env=GANTRY_ADVERTISE=127.0.0.1"]
    podman("run", "--detach", "--name=one", "--ulimit=host", *confined, service["image"], *service["command"])
    wait_until(lambda: podman("healthcheck", "run", "one", needs=False).returncode == 0)
    for role, port in ("namesrv", 9876), ("broker", 10911), ("proxy", 8081):
        podman("exec", "one", "gantry", "ready", role, f"127.0.0.1:{port}")
    assert podman("exec", "one", "id", "-u").stdout == "10001\n"
    assert podman("exec", "one", "touch", "/usr/bin/more", needs=False).returncode != 0
    podman("stop", "--time=120", "one")
    assert podman("logs", "one").stdout.endswith("nothing is lost.\n")
