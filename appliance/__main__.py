"""The `gantry` command: `gantry NAME …`, also `python -m appliance NAME …`.

Each command is a module `appliance.cli.NAME` (or the `main` of a room of that name) with `add_arguments(parser)` and
`run(arguments) -> exit code`. Only the chosen one is imported: a broker starts without Django or Spark, and
`gantry --help` imports nothing at all.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from appliance.cli.parser import CommandParser
from appliance.cli.terminal import TerminalText
from appliance.process.parent_death import end_with_parent
from gantrymq.errors import ConfigError, GantryError

COMMANDS = {
    "up": "start the whole appliance: name server, brokers, dashboard, reports",
    "namesrv": "run one name server",
    "broker": "run one broker",
    "report": "compute a historical report with Spark",
    "admin": "inspect and change a running cluster: topics, groups, messages, settings, accounts",
    "users": "manage the users of the dashboard: accounts, roles, passwords, locks, sessions",
    "store": "inspect a store folder, verify it, repair it",
    "bench": "measure this broker and Apache RocketMQ",
    "tls": "create certificates for TLS between your own machines",
    "install-reports": "install the report stack (Spark, and a Java)",
    "version": "print the version",
}
ROOMS = {"admin": "appliance.cli.admin.main"}  # commands that are more than a module
PRIVATE_UMASK = 0o077  # files are readable by their owner only, also in copies of the data folder
EXIT_FAILED = 1
EXIT_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    end_with_parent()
    os.umask(PRIVATE_UMASK)
    out, err = TerminalText(sys.stdout), TerminalText(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return _run(list(sys.argv[1:] if arguments is None else arguments))


def module_of(command: str) -> str:
    """The module that has this command's `add_arguments` and `run`."""
    return ROOMS.get(command, f"appliance.cli.{command.replace('-', '_')}")


def _run(given: list[str]) -> int:
    if given[:1] == ["--version"]:
        given = ["version"]
    chosen = _top_parser().parse_args(given[:1]).command
    module = importlib.import_module(module_of(chosen))
    parser = CommandParser(
        prog=f"gantry {chosen}", description=module.__doc__ or COMMANDS[chosen], chooses=chosen == "admin"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    module.add_arguments(parser)
    try:
        return int(module.run(parser.parse_args(given[1:])))
    except GantryError as exc:
        print(f"gantry {chosen}: {exc}", file=sys.stderr)
        return EXIT_USAGE if isinstance(exc, ConfigError) else EXIT_FAILED


def _top_parser() -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name:<16} {summary}" for name, summary in COMMANDS.items())
    parser = CommandParser(
        prog="gantry",
        chooses=True,
        usage="gantry COMMAND …",
        description="GantryMQ: a message broker that speaks Apache RocketMQ 4.9.",
        epilog=f"commands:\n{lines}\n\n`gantry COMMAND --help` shows the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)  # see the epilog
    return parser


if __name__ == "__main__":
    sys.exit(main())
