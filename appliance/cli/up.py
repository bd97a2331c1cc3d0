"""Start the whole appliance: name server, brokers, dashboard, reports.

Every option can also be set in gantry.toml (http_port = 8081) or in the environment (GANTRY_HTTP_PORT=8081). Options
take precedence over the environment, and the environment over the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from appliance.cli.checks.every import before_start
from appliance.cli.checks.finding import Finding
from appliance.cli.checks.machine import raise_open_files
from appliance.cli.checks.ports import broker_ports, is_port_free, wanted_ports
from appliance.cli.privileges import drop_privileges
from appliance.process.data_folder import lay_out
from appliance.settings.appliance_config import ApplianceConfig, describe
from appliance.settings.broker_processes import broker_processes
from appliance.settings.variables import CONFIG_VARIABLE
from appliance.supervisor.etcd_node import lay_out_etcd
from appliance.supervisor.gantry_command import gantry_environment
from gantrymq.errors import ConfigError, GantryError

PORT_TRIES = 200
TEXT_OPTIONS = {  # and what their value is called
    "bind": "ADDRESS",
    "advertise": "ADDRESS",
    "cluster": "NAME",
    "attach": "ADDRESSES",
    "attach_account": "FILE",
    "attach_trust": "FILE",
    "tls_cert": "FILE",
    "tls_key": "FILE",
    "tls_trust": "FILE",
    "tls_mode": "MODE",
    "tls_client_auth": "WHETHER",
    "allowed_hosts": "NAMES",
    "trusted_proxies": "ADDRESSES",
    "spark_master": "MASTER",
    "log_level": "LEVEL",
    "user": "NAME",
}
NUMBER_OPTIONS = ("http_port", "namesrv_port", "broker_port", "brokers", "slaves", "replicas", "proxy_port", "proxies")
SWITCHES = ("accounts", "allow_open_network", "allow_root")


class NotReady(GantryError):
    """The machine is not ready for the appliance; the problems have been printed already."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings file (default: gantry.toml, if it exists)"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help=describe("data"))
    for name, metavar in TEXT_OPTIONS.items():
        parser.add_argument(_option(name), metavar=metavar, help=_help(name))
    for name in NUMBER_OPTIONS:
        parser.add_argument(_option(name), type=int, metavar="N", help=_help(name))
    for name in SWITCHES:
        parser.add_argument(_option(name), action="store_true", default=None, help=_help(name))
    parser.add_argument(
        "--no-install-reports", dest="install_reports", action="store_false", default=None, help="leave Spark out"
    )


def run(arguments: argparse.Namespace) -> int:
    """Check, prepare, then become the guardian. Returns only after an error."""
    given = {name: value for name, value in vars(arguments).items() if name != "config"}
    config = ApplianceConfig.load(given, config_file=arguments.config)
    drop_privileges(config)
    config = with_real_ports(config)
    raise_open_files()
    _tell(before_start(config))
    lay_out(config)
    if config.replicas > 1:
        lay_out_etcd(config.etcd_folder)
    if config.accounts:
        from appliance.acl.own_account import ensure_own_account  # YAML and all of the gate: only where it is on

        ensure_own_account(config.accounts_folder)
    environment = {**os.environ, **config.to_environment(), **gantry_environment()}
    environment.pop(CONFIG_VARIABLE, None)  # its settings are in the variables now
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-P", "-m", "appliance.supervisor.guardian"], environment)


def with_real_ports(config: ApplianceConfig) -> ApplianceConfig:
    """The same settings with a free port instead of each 0."""
    taken: set[int] = set()
    ports: dict[str, Any] = {}
    if config.broker_port == 0:
        ports["broker_port"] = _free_broker_port(config)
        taken.update(port for _, port, _ in wanted_ports(dataclasses.replace(config, **ports)))
    for name in ("http_port", "namesrv_port"):
        if getattr(config, name) == 0:
            ports[name] = _free_port(config.bind, taken)
            taken.add(ports[name])
    if config.proxy_port == 0:
        ports["proxy_port"] = _free_port(config.bind, taken, config.proxies)
    return dataclasses.replace(config, **ports)


def _free_broker_port(config: ApplianceConfig) -> int:
    """A port whose neighbours for the VIP listeners, and those of all further brokers, are free as well."""
    for _ in range(PORT_TRIES):
        base = _free_port(config.bind, set())
        wanted = [port for _, port in broker_ports(broker_processes(config.brokers, config.slaves_each, base))]
        if max(wanted) <= 65535 and all(is_port_free(config.bind, port) for port in wanted):
            return base
    raise ConfigError("no free port for the brokers was found: name one with --broker-port")


def _free_port(host: str, taken: set[int], count: int = 1) -> int:
    """The first of so many free ports in a row."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
            port = int(probe.getsockname()[1])
        further = range(port + 1, port + count)
        if port not in taken and all(
            each <= 65535 and each not in taken and is_port_free(host, each) for each in further
        ):
            return port


def _tell(findings: Iterable[Finding]) -> None:
    """Print what was found; stop when something fatal is among it."""
    fatal = 0
    for finding in findings:
        fatal += finding.is_fatal
        if not finding.is_good:
            print(f"{finding.mark} {finding.sentence}", file=sys.stderr)
    if fatal:
        raise NotReady("not started: fix 1 problem first" if fatal == 1 else f"not started: fix {fatal} problems first")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _help(name: str) -> str:
    text = describe(name).removesuffix(" (default: False)")  # a switch is off unless it is given
    return text.replace("%", "%%")
