"""Real etcd members on loopback: started, killed, stopped for a while, with a user and with TLS."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from appliance.bench.processes import free_ports
from appliance.register.etcd import endpoints_of
from appliance.register.http_call import post
from tests.conftest import require_tool
from tests.waiting import wait_until

REASON = "etcd gives out the epochs (Debian: apt install etcd-server)"


class EtcdMember:
    """One process. url: where clients ask it."""

    def __init__(
        self,
        folder: Path,
        name: str,
        certificate: tuple[Path, Path] | None,
        *,
        host: str = "127.0.0.1",
        runner: Sequence[str] = (),
    ) -> None:
        self._program = require_tool("etcd", REASON)
        self._folder, self.name, self._certificate = folder, name, certificate
        port = free_ports(1)
        self.url = f"{'https' if certificate else 'http'}://{host}:{port}"
        self.peer_url = f"http://{host}:{port + 1}"
        self.log = folder / f"{name}.log"
        self._runner = runner
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, members: Sequence[EtcdMember], *options: str) -> None:
        """members: of the cluster, this one included. options: further ones of etcd."""
        command = [
            *self._runner, str(self._program), "--name", self.name, "--data-dir", str(self._folder / self.name),
            "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
            "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
            "--initial-cluster", ",".join(f"{each.name}={each.peer_url}" for each in members),
            "--auto-compaction-retention", "1h", *options,
        ]  # fmt: skip
        if self._certificate is not None:
            command += ["--cert-file", str(self._certificate[0]), "--key-file", str(self._certificate[1])]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def add(self, member: EtcdMember) -> None:
        """Have the cluster of this one expect that member, which is to start with an empty folder. It refuses for some
        seconds after the member before has come."""
        words = ("member", "add", member.name, f"--peer-urls={member.peer_url}")
        wait_until(lambda: self.control(*words).returncode == 0)

    def control(self, *words: str) -> subprocess.CompletedProcess[str]:
        """etcdctl, as a person uses it with this member."""
        program = require_tool("etcdctl", "a person changes etcd with it (Debian: apt install etcd-client)")
        command = [str(program), "--endpoints", self.url, *words]
        environment = {**os.environ, "ETCDCTL_API": "3"}
        return subprocess.run(command, env=environment, capture_output=True, check=False, text=True)

    def begin_anew(self, token: str) -> None:
        """Go on as the only member of a cluster that is restored from a snapshot of now. token: with the addresses it
        gives the cluster its id; etcd's default is etcd-cluster."""
        folder, snapshot = self._folder / self.name, str(self._folder / "snapshot.db")
        assert self.control("snapshot", "save", snapshot).returncode == 0
        self.kill()
        shutil.rmtree(folder)
        ran = self.control(
            "snapshot", "restore", snapshot, "--name", self.name, "--data-dir", str(folder),
            "--initial-cluster", f"{self.name}={self.peer_url}", "--initial-advertise-peer-urls", self.peer_url,
            "--initial-cluster-token", token,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        self.start([self])
        wait_until(lambda: self.answers(""))

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_leader(self) -> bool:
        """False also where it does not answer, or knows of none."""
        told = self._ask("/v3/maintenance/status", {}, "")
        return told is not None and told.get("leader") == told["header"]["member_id"]

    def answers(self, ca_file: str) -> bool:
        return self._ask("/v3/kv/range", {"key": "YQ=="}, ca_file) is not None

    def _ask(self, path: str, document: dict[str, str], ca_file: str) -> Any:
        """Its answer; None without one."""
        tls = ssl.create_default_context(cafile=ca_file) if ca_file else None
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(document).encode())
        try:
            with urllib.request.urlopen(request, timeout=2, context=tls) as answer:
                return json.load(answer)
        except OSError:
            return None


@contextlib.contextmanager
def etcd(
    folder: Path,
    *,
    members: int = 1,
    certificate: tuple[Path, Path] | None = None,
    ca_file: str = "",
    host: str = "127.0.0.1",
    runner: Sequence[str] = (),
) -> Iterator[list[EtcdMember]]:
    """Members that answer; killed at the end. host, runner: where all are, and what runs a program there."""
    folder.mkdir(parents=True, exist_ok=True)
    started = [EtcdMember(folder, f"etcd{number}", certificate, host=host, runner=runner) for number in range(members)]
    try:
        for each in started:
            each.start(started)
        for each in started:
            wait_until(lambda each=each: each.answers(ca_file))  # type: ignore[misc]
        yield started
    finally:
        for each in started:
            each.kill()


def urls_of(members: Sequence[EtcdMember]) -> str:
    return ",".join(member.url for member in members)


def with_quota(member: EtcdMember, members: Sequence[EtcdMember], quota_bytes: int) -> None:
    """The member starts again, and refuses every change once its database is that large."""
    member.kill()
    member.start(members, "--quota-backend-bytes", str(quota_bytes))
    wait_until(lambda: member.answers(""))


def give_room(member: EtcdMember) -> None:
    """As the runbook says for an etcd of one member."""
    told = json.loads(member.control("endpoint", "status", "--write-out=json").stdout)
    revision = told[0]["Status"]["header"]["revision"]
    for words in (("compact", str(revision)), ("defrag",), ("alarm", "disarm")):
        ran = member.control(*words)
        assert ran.returncode == 0, ran.stderr


async def require_user(member: EtcdMember, user: str, password: str) -> None:
    """From now on etcd asks for a name and a password; this user may do everything."""
    (endpoint,) = endpoints_of(member.url)
    for path, document in (
        ("user/add", {"name": "root", "password": password}),
        ("user/add", {"name": user, "password": password}),
        ("role/add", {"name": "root"}),
        ("user/grant", {"user": "root", "role": "root"}),
        ("user/grant", {"user": user, "role": "root"}),
        ("enable", {}),
    ):
        deadline = asyncio.get_running_loop().time() + 10
        answer = await post(endpoint, f"/v3/auth/{path}", json.dumps(document).encode(), {}, deadline)
        assert answer.status == 200, answer
