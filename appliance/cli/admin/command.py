"""What a command of `gantry admin` is: its options, what it does, what it shows, and the question before a loss."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from appliance.cli.admin.failures import NotWanted
from appliance.cli.admin.options import add_common, open_admin
from appliance.cli.admin.output import print_lines
from appliance.cli.asking import asking
from gantrymq.errors import ConfigError


@dataclass
class Shown:
    """The output of a command: as JSON, and as lines. troubles: what went wrong besides, a sentence each."""

    document: Any
    lines: Sequence[str] = ()
    troubles: Sequence[str] = ()
    is_failure: bool = False


Act = Callable[[Any, argparse.Namespace], Awaitable[Shown]]  # with what `opens` gives it
Opens = Callable[[argparse.Namespace], contextlib.AbstractAsyncContextManager[Any]]


@dataclass(frozen=True)
class Command:
    """One verb. `arguments` adds its own options. plan: what `act` would do, for --dry-run and before asking; such a
    command changes something. loses: it asks before, unless --yes. opens: what it asks, the cluster unless it says
    otherwise."""

    summary: str
    act: Act
    arguments: Callable[[argparse.ArgumentParser], Any] = field(default=lambda parser: None)
    plan: Act | None = None
    loses: bool = False
    aliases: tuple[str, ...] = ()
    opens: Opens = open_admin

    @property
    def changes(self) -> bool:
        return self.plan is not None


def add_command(parser: argparse.ArgumentParser, command: Command) -> None:
    parser.description = sentence(command.summary)
    command.arguments(parser)
    if command.changes:
        parser.add_argument("--dry-run", action="store_true", help="show what would be done and change nothing")
        does_ask = "do not ask for confirmation" if command.loses else "no effect: this command never asks"
        parser.add_argument("-y", "--yes", action="store_true", help=does_ask)
    parser.usage = parser.format_usage().removeprefix("usage: ").rstrip()  # of its own options: the others are long
    add_common(parser)
    parser.set_defaults(command=command)
    if not command.loses:
        parser.set_defaults(yes=True)


def sentence(summary: str) -> str:
    """A summary as a sentence."""
    return f"{summary[0].upper()}{summary[1:]}."


def ask_first(plan: Shown, arguments: argparse.Namespace) -> None:
    """Show the plan and wait for a yes. ConfigError when no person can answer, NotWanted when the answer is no."""
    if not sys.stdin.isatty() or arguments.json:
        raise ConfigError(
            "this needs a confirmation, and there is no terminal: use --yes, or --dry-run to see what it would do"
        )
    print_lines(plan.lines)
    answer = ""
    with asking(), contextlib.suppress(EOFError):
        answer = input("Do it? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise NotWanted("nothing was changed")
