"""The worker processes of one appliance: their properties files and the commands that start them.

`gantry up` writes the lines it is responsible for (ports, addresses, folders, names) at every start and leaves all
other lines of a properties file alone, so any setting of RocketMQ's broker.conf can be added there and stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from appliance.appliance_config import ROOT, ApplianceConfig, join_address
from appliance.supervisor.child import ChildSpec

HEADER = "# gantry up writes these lines at every start; other settings of RocketMQ may stand below them and stay:"
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def worker_stages(config: ApplianceConfig) -> list[list[ChildSpec]]:
    """What to start, in order: the name server first, then all brokers at once. Writes their properties files."""
    return [[_namesrv(config)], [_broker(config, index) for index in range(config.brokers)]]


def gantry_command(*arguments: str) -> tuple[str, ...]:
    """The command line of `gantry ARGUMENTS` in this Python; -P keeps the working folder out of its imports."""
    return (sys.executable, "-P", "-m", "appliance", *arguments)


def gantry_environment() -> dict[str, str]:
    """With these variables the checkout's packages are found wherever the command is started."""
    further = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), further]) if further else str(ROOT), "PYTHONUNBUFFERED": "1"}


def _namesrv(config: ApplianceConfig) -> ChildSpec:
    path = config.namesrv_folder / "namesrv.properties"
    managed = {
        "bindAddress": config.bind,
        "listenPort": str(config.namesrv_port),
        "kvConfigPath": str(config.namesrv_folder / "kvConfig.json"),
    }
    write_managed_properties(path, managed)
    return _worker(config, "namesrv", "namesrv", path, config.namesrv_address)


def _broker(config: ApplianceConfig, index: int) -> ChildSpec:
    name = config.broker_names[index]
    folder = config.brokers_folder / name
    managed = {
        "brokerName": name,
        "brokerClusterName": config.cluster,
        "namesrvAddr": join_address(WILDCARDS.get(config.bind, config.bind), config.namesrv_port),
        "bindAddress": config.bind,
        "listenPort": str(config.broker_port_of(index)),
        "brokerIP1": config.advertise,
        "storePathRootDir": str(folder / "store"),
    }
    path = folder / "broker.properties"
    write_managed_properties(path, managed)
    return _worker(config, name, "broker", path, config.broker_address_of(index))


def _worker(config: ApplianceConfig, name: str, role: str, properties: Path, address: str) -> ChildSpec:
    command = gantry_command(role, "-c", str(properties), "--log-level", config.log_level)
    return ChildSpec(name=name, role=role, command=command, address=address, environment=gantry_environment())


def write_managed_properties(path: Path, managed: Mapping[str, str]) -> None:
    """Put the managed lines first and keep what else the file says."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = [line for line in _lines(path) if line != HEADER and _key(line) not in managed]
    lines = [HEADER, *(f"{key}={value}" for key, value in managed.items()), *kept]
    new = path.with_name(path.name + ".new")
    new.write_text("\n".join(lines) + "\n", encoding="utf-8")
    new.replace(path)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _key(line: str) -> str:
    return line.partition("=")[0].strip()
