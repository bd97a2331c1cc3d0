"""One option of a verb that asks REST: the value of the body that it sets, and the way back from the value to words."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from appliance.cli.admin.options import not_negative, parse_pair, positive
from appliance.cli.admin.rest.values import integer, number, seconds
from appliance.cli.asking import asking
from gantrymq.errors import ConfigError

HIDDEN = "…"  # stands for a secret in a line that is shown
SECRET_CHARS_MAX = 4096
VALUES: dict[Any, str] = {positive: "N", not_negative: "N", integer: "N", number: "N", seconds: "TIME"}  # in helps


@dataclass(frozen=True)
class Field:
    """One value of a body, or of a query, and the option that sets it; a name in capitals is no option but a place.

    kind: `switch` is NAME or --no-NAME; `pairs` are --set NAME=VALUE and --ask NAME, which reads a secret; `secret` is
    always asked for. nothing: the option that says null, or the empty list.
    """

    key: str
    name: str
    help: str = ""
    read: Callable[[str], Any] = str
    kind: Literal["value", "many", "switch", "pairs", "secret"] = "value"
    nothing: str = ""
    is_needed: bool = False

    @property
    def is_option(self) -> bool:
        return self.name.startswith("-")

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Its options; what is not given leaves nothing in the namespace."""
        if self.kind == "secret":
            return
        if self.kind == "pairs":
            parser.add_argument("--set", action="append", type=parse_pair, metavar="NAME=VALUE", default=[],
                                dest="pairs", help=self.help)  # fmt: skip
            parser.add_argument("--ask", action="append", metavar="NAME", default=[], dest="asked",
                                help="a secret, from the terminal or a line of standard input; repeatable")  # fmt: skip
            return
        if self.kind == "switch":
            both = parser.add_mutually_exclusive_group(required=self.is_needed)
            both.add_argument(self.name, action="store_true", dest=self.key, default=argparse.SUPPRESS, help=self.help)
            both.add_argument(self.nothing, action="store_false", dest=self.key, default=argparse.SUPPRESS,
                              help=f"not {self.name}")  # fmt: skip
        elif self.is_option:
            self._add_option(parser)
        elif self.kind == "many":
            parser.add_argument(self.key, type=self.read, metavar=self.name, help=self.help, nargs="+")
        else:
            parser.add_argument(self.key, type=self.read, metavar=self.name, help=self.help)

    def _add_option(self, parser: argparse.ArgumentParser) -> None:
        either = parser.add_mutually_exclusive_group(required=self.is_needed) if self.nothing else parser
        metavar = VALUES.get(self.read, self.name.rpartition("-")[2].upper())
        either.add_argument(
            self.name, type=self.read, dest=self.key, metavar=metavar,
            action="append" if self.kind == "many" else "store", required=self.is_needed and not self.nothing,
            default=argparse.SUPPRESS, help=self.help,
        )  # fmt: skip
        if self.nothing:
            empty: Any = [] if self.kind == "many" else None
            either.add_argument(self.nothing, action="store_const", const=empty, dest=self.key,
                                default=argparse.SUPPRESS, help=self.told_of_nothing)  # fmt: skip

    @property
    def told_of_nothing(self) -> str:
        return f"instead of {self.name}: {self.nothing.lstrip('-').replace('-', ' ')}"

    def words(self, value: Any) -> list[str]:
        """The words of the command that set this value."""
        if self.kind == "secret":
            return []
        if self.kind == "switch":
            return [self.name if value else self.nothing]
        if self.kind == "pairs":
            return [word for name, each in value.items() for word in _pair_words(name, each)]
        if value is None or value == []:
            return [self.nothing] if self.nothing else []
        if not self.is_option:
            return [text_of(each) for each in value] if self.kind == "many" else [text_of(value)]
        each_of = value if self.kind == "many" else [value]
        return [word for each in each_of for word in self._option_words(text_of(each))]

    def _option_words(self, text: str) -> list[str]:
        return [f"{self.name}={text}"] if text.startswith("-") else [self.name, text]


def ask_secret(what: str) -> str:
    """Without showing it at a terminal, else a line of standard input. Raises ConfigError."""
    if not sys.stdin.isatty():
        text = sys.stdin.readline(SECRET_CHARS_MAX + 2).rstrip("\r\n")
    else:
        try:
            with asking():
                text = getpass.getpass(f"{what}: ")
        except EOFError:
            text = ""
    if not text:
        raise ConfigError(f"{what} was not given: type it, or give it as a line of standard input")
    if len(text) > SECRET_CHARS_MAX:
        raise ConfigError(f"{what} has more than {SECRET_CHARS_MAX} characters")
    return text


def _pair_words(name: str, value: Any) -> Sequence[str]:
    return ["--ask", name] if value == HIDDEN else ["--set", f"{name}={text_of(value)}"]


def setting(name: str, text: str) -> str | int:
    return int(text) if name == "port" and text.isdecimal() else text


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)
