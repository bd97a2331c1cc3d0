"""The `gantry` command: `gantry NAME …`, also `python -m appliance NAME …`.

Each command is a module `appliance.cli.NAME` (or the `main` of a room of that name) with `add_arguments(parser)` and
`run(arguments) -> exit code`. Only the chosen one is imported: a broker starts without Django or Spark, and
`gantry --help` imports nothing at all.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Sequence

from appliance.cli.commands import COMMANDS, module_of, parser_of
from appliance.cli.parser import EXIT_FAILED, EXIT_USAGE, CommandParser
from appliance.cli.terminal import TerminalText
from appliance.process.parent_death import end_with_parent
from gantrymq.errors import ConfigError, GantryError

WITHOUT_COMMAND = "up"  # `gantry` and `gantry --brokers 2` start the appliance
NOWHERE = logging.NullHandler()  # the SDK's log, unless the process has a log: commands say themselves what matters
PRIVATE_UMASK = 0o077  # files are readable by their owner only, also in copies of the data folder


def main(arguments: Sequence[str] | None = None) -> int:
    end_with_parent()
    os.umask(PRIVATE_UMASK)
    logging.getLogger("gantrymq").addHandler(NOWHERE)
    out, err = TerminalText(sys.stdout), TerminalText(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return _run(list(sys.argv[1:] if arguments is None else arguments))


def _run(given: list[str]) -> int:
    if given[:1] == ["--version"]:
        given = ["version"]
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given = [WITHOUT_COMMAND, *given]
    chosen = _top_parser().parse_args(given[:1]).command
    parser = parser_of(chosen)
    try:
        return int(importlib.import_module(module_of(chosen)).run(parser.parse_args(given[1:])))
    except GantryError as exc:
        print(f"gantry {chosen}: {exc}", file=sys.stderr)
        return EXIT_USAGE if isinstance(exc, ConfigError) else EXIT_FAILED


def _top_parser() -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name:<16} {summary}" for name, summary in COMMANDS.items())
    parser = CommandParser(
        prog="gantry",
        chooses=True,
        usage="gantry [COMMAND] …",
        description="GantryMQ: a message broker that speaks Apache RocketMQ 4.9.",
        epilog=f"commands:\n{lines}\n\nwithout a command: `gantry up`. `gantry COMMAND --help` shows options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)  # see the epilog
    return parser


if __name__ == "__main__":
    sys.exit(main())
