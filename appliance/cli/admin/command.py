"""What the commands of `gantry admin` share: options, connection, asking before a loss, errors in a sentence."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from appliance.cli.admin.options import add_common
from appliance.cli.admin.output import print_lines
from appliance.cli.asking import asking
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import (
    ConfigError,
    ConnectError,
    GantryError,
    PartlyDone,
    RequestTimeout,
    ResponseError,
    RouteNotFound,
)

ACL_REFUSAL = "org.apache.rocketmq.acl.common.AclException:"
ACCOUNT_HINT = (
    "the account is what GANTRYMQ_ACCESS_KEY and GANTRYMQ_SECRET_KEY say, or a file that GANTRYMQ_CREDENTIALS names, "
    "such as data/accounts/appliance.yml"
)
AGO = re.compile(r"(\d+)\s*(s|m|min|h|d)")
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


@dataclass
class Shown:
    """What a command has to say: as JSON, and as lines. troubles: what went wrong besides, a sentence each."""

    document: Any
    lines: Sequence[str] = ()
    troubles: Sequence[str] = ()
    is_failure: bool = False


Act = Callable[[AdminClient, argparse.Namespace], Awaitable[Shown]]


@dataclass(frozen=True)
class Command:
    """One verb. `arguments` adds its own options. plan: what `act` would do, for --dry-run and before asking; such a
    command changes something. loses: it asks before, unless --yes."""

    summary: str
    act: Act
    arguments: Callable[[argparse.ArgumentParser], Any] = field(default=lambda parser: None)
    plan: Act | None = None
    loses: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return self.plan is not None


def add_command(parser: argparse.ArgumentParser, command: Command) -> None:
    parser.description = sentence(command.summary)
    command.arguments(parser)
    if command.changes:
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
        does_ask = "don't ask" if command.loses else "this never asks: taken so that all that changes something take it"
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
    """Show the plan and wait for a yes. ConfigError when nobody can be asked, NotWanted when the answer is no."""
    if not sys.stdin.isatty() or arguments.json:
        raise ConfigError(
            "this asks first, and nobody can answer here: give --yes, or --dry-run to see what it would do"
        )
    print_lines(plan.lines)
    answer = ""
    with asking(), contextlib.suppress(EOFError):
        answer = input("Do it? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise NotWanted("nothing was changed")


class NotThere(GantryError):
    """What the command is about does not exist."""


class NotWanted(GantryError):
    """Whoever was asked said no."""


class Failed:
    """Failures as one sentence."""

    @staticmethod
    def explain(failure: Exception, namesrv: str) -> str:
        if isinstance(failure, PartlyDone):
            where = ", ".join(f"{name} ({Failed.explain(each, '')})" for name, each in sorted(failure.failures.items()))
            done = f"done at {', '.join(sorted(failure.done))}, but " if failure.done else ""
            return f"{done}failed at {where}"
        if isinstance(failure, ConnectError):
            if failure.address in namesrv:
                return f"no name server answers at {failure.address} ({plain_reason(failure.reason)}); -n names another"
            return f"{failure.address} can't be reached: {plain_reason(failure.reason)}"
        if isinstance(failure, RouteNotFound) and "no route info" in str(failure):
            return f"there is no topic {failure.topic}: `gantry admin topics list --all` shows those there are"
        if isinstance(failure, RequestTimeout):
            return f"{failure.address} did not answer within {failure.timeout_s:g} s"
        if isinstance(failure, ResponseError):
            where = f"{failure.address}: " if failure.address else ""
            if ACL_REFUSAL in (failure.remark or ""):
                why = first_sentence(failure.remark).removeprefix(ACL_REFUSAL).strip()
                return f"{where}refused: {why} (code {failure.code}); {ACCOUNT_HINT}"
            return f"{where}{first_sentence(failure.remark)} (code {failure.code})"
        return first_sentence(str(failure))


def plain_reason(reason: str) -> str:
    """Why there is no connection, in the system's own words instead of asyncio's."""
    number = re.search(r"\[Errno (\d+)\]", reason)
    if number is not None:
        return os.strerror(int(number[1])).lower()
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return "its certificate is not trusted: " + re.sub(r".*verify failed: | \(_ssl\.c:\d+\)\W*", "", reason)
    return reason or "connection closed"


def first_sentence(remark: str | None) -> str:
    """A peer's explanation without stack traces and the addresses of help pages."""
    text = (remark or "").strip().splitlines()
    if not text:
        return "no reason given"
    return re.sub(r"\s*See https?://\S+.*|,? org\.[\w.$]+\(\w+\.java:\d+\)", "", text[0]).strip()


def parse_time(text: str) -> int:
    """Milliseconds since the epoch: "2026-11-21 10:00", "10:30" (today), "2h" (so long ago), "now", or milliseconds.

    -1 for "end" ("last", "latest"), 0 for "begin" ("first", "earliest"). ArgumentTypeError tells the forms.
    """
    word = text.strip().lower()
    if word in ("end", "last", "latest", "max"):
        return -1
    if word in ("begin", "first", "earliest", "min"):
        return 0
    now = time.time()
    if word == "now":
        return int(now * 1000)
    if (ago := AGO.fullmatch(word.removesuffix("ago").strip().removeprefix("-"))) is not None:
        return int((now - int(ago[1]) * SECONDS[ago[2]]) * 1000)
    if word.isdecimal() and len(word) >= 11:
        return int(word)
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", word):
            return int(datetime.fromisoformat(f"{datetime.now():%Y-%m-%d} {word.zfill(5)}").timestamp() * 1000)
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: use 2026-11-21T10:00, 10:30, 2h (so long ago), begin, end, or milliseconds"
        ) from None


def parse_pair(text: str, *, example: str = "colour=blue") -> tuple[str, str]:
    """NAME=VALUE."""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as {example}")
    return name.strip(), value.strip()


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on, such as 4")
    return int(text)


def not_negative(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on, such as 0")
    return int(text)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--cluster", metavar="NAME", help="only this cluster")


def troubles_of(failures: dict[str, Any]) -> list[str]:
    """Brokers that did not answer, a sentence each."""
    return [f"broker {name}: {Failed.explain(failure, '')}" for name, failure in sorted(failures.items())]
