"""etcd of this machine, as one process of the appliance: one member, on loopback, its data in the data folder.

It gives out the epochs of brokers with replicas, so it is started before them and stopped after them. One member on one
machine is for trying, and for machines whose loss is no concern: it does not make the brokers more available than it
is itself. `python -m appliance.supervisor.etcd_node FOLDER` becomes the etcd of that folder.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from appliance.process.local_etcd import HOST, NODE_FILE, LocalEtcd, local_etcd
from appliance.process.parent_death import end_with_parent
from appliance.settings.replaced_file import replace_file
from gantrymq.errors import ConfigError

PROGRAM = "etcd"
VERSION_MIN = (3, 4)  # older ones have another path for the JSON gateway
INSTALL = "install it (Debian, Ubuntu: `apt install etcd-server`)"
VERSION_TIMEOUT_S = 20.0
QUOTA_BYTES = 256 << 20  # a record takes some kilobytes, and an hour of renewals some megabytes
COMPACTED_AFTER = "1h"
ENTRIES_BEFORE_SNAPSHOT = 10_000  # these stay in memory, too
OWN_VARIABLES = "ETCD_"  # etcd reads options from them


@dataclass(frozen=True, slots=True)
class EtcdProgram:
    """path: "" when there is none that can be used; why_none says why, then."""

    path: str
    why_none: str = ""


def find_etcd(path: str | None = None) -> EtcdProgram:
    """The etcd on PATH, if its version will do. Runs it. path: instead of PATH."""
    found = shutil.which(PROGRAM, path=path)
    if found is None:
        return EtcdProgram("", f"there is no etcd on this machine: {INSTALL}")
    try:
        ran = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, env=_environment()
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return EtcdProgram("", f"{found} can't be started ({exc})")
    version = re.search(r"etcd Version: (\d+)\.(\d+)(\S*)", ran.stdout)
    if version is None:
        return EtcdProgram("", f"{found} does not tell its version: is it etcd?")
    if (int(version[1]), int(version[2])) < VERSION_MIN:
        told, wanted = f"{version[1]}.{version[2]}{version[3]}", ".".join(map(str, VERSION_MIN))
        return EtcdProgram("", f"{found} is version {told}, and {wanted} or later is needed")
    return EtcdProgram(found)


def lay_out_etcd(folder: Path) -> None:
    """Note program and ports for this start: those of the last one, unless another program took them meanwhile.

    Without a program nothing is noted.
    """
    if not (program := find_etcd().path):
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    was = local_etcd(folder)
    ports = [was.client_port, was.peer_port] if was is not None else [0, 0]
    chosen = _free_ports(ports)
    replace_file(folder / NODE_FILE, LocalEtcd(program, *chosen).to_json() + "\n")


def _free_ports(wanted: list[int]) -> list[int]:
    """The wanted ports, with another one for each that is 0 or taken."""
    held = list[socket.socket]()
    try:
        for port in wanted:
            probe = socket.socket()
            held.append(probe)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                probe.bind((HOST, 0))
        return [int(probe.getsockname()[1]) for probe in held]
    finally:
        for probe in held:
            probe.close()


def arguments_of(node: LocalEtcd, folder: Path) -> list[str]:
    """Its command line. Without compaction etcd would fill its quota and refuse all changes."""
    options = {
        "name": "gantry",
        "data-dir": str(folder / "data"),
        "listen-client-urls": node.url,
        "advertise-client-urls": node.url,
        "listen-peer-urls": node.peer_url,
        "initial-advertise-peer-urls": node.peer_url,
        "initial-cluster": f"gantry={node.peer_url}",
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": COMPACTED_AFTER,
        "quota-backend-bytes": str(QUOTA_BYTES),
        "snapshot-count": str(ENTRIES_BEFORE_SNAPSHOT),
    }
    return [node.program, *(word for option, value in options.items() for word in (f"--{option}", value))]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}


def main(folder: Path) -> None:
    """Become etcd; it ends with its parent, as all processes of the appliance do."""
    node = local_etcd(folder)
    if node is None:
        raise ConfigError(f"{folder / NODE_FILE} is gone: start `gantry up` again")
    end_with_parent()
    os.execve(node.program, arguments_of(node, folder), _environment())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
