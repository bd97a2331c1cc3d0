"""The commands of `gantry`: which module each is, and its parser. `completion` reads them, too."""

from __future__ import annotations

import argparse
import importlib

from appliance.cli.parser import CommandParser

COMMANDS = {
    "up": "start the whole appliance: name server, brokers, dashboard, reports",
    "namesrv": "run one name server",
    "broker": "run one broker",
    "proxy": "run one proxy: gRPC for RocketMQ 5 clients",
    "report": "compute a historical report with Spark",
    "admin": "inspect and change a running cluster: topics, groups, messages, settings, accounts",
    "users": "manage the users of the dashboard: accounts, roles, passwords, locks, sessions",
    "store": "inspect a store folder, verify it, repair it",
    "doctor": "look at this machine and the appliance on it: what is wrong, and what to do",
    "ready": "say whether one process serves, for health checks",
    "support-bundle": "collect what support needs: settings, checks, figures, logs; no secrets",
    "backup": "copy the data folder while the appliance runs",
    "restore": "bring a backup back",
    "bench": "measure this broker and Apache RocketMQ",
    "capacity": "work out what a cluster needs for a rate of messages",
    "tls": "create certificates for TLS between your own machines",
    "install-reports": "install the report stack (Spark, and a Java)",
    "completion": "complete commands and options in bash, zsh or fish",
    "version": "print the version",
}
ROOMS = {  # commands that are more than a module, or stand in a room of their kind
    "admin": "appliance.cli.admin.main",
    **{role: f"appliance.cli.roles.{role}" for role in ("broker", "namesrv", "proxy")},
    "doctor": "appliance.cli.doctor.main",
    "install-reports": "appliance.cli.install_reports.main",
    "ready": "appliance.cli.doctor.ready",
    "support-bundle": "appliance.cli.support.bundle",
    "backup": "appliance.cli.backup.make",
    "restore": "appliance.cli.backup.restore",
}


def module_of(command: str) -> str:
    """The module that has this command's `add_arguments` and `run`."""
    return ROOMS.get(command, f"appliance.cli.{command.replace('-', '_')}")


def parser_of(command: str) -> CommandParser:
    """The parser of what follows a command."""
    module = importlib.import_module(module_of(command))
    parser = CommandParser(
        prog=f"gantry {command}", description=module.__doc__ or COMMANDS[command], chooses=command == "admin"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    module.add_arguments(parser)
    return parser
