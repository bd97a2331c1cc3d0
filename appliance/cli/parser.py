"""The argument parser of every `gantry` command: errors suggest a correction, with exit code 2.

Differences from argparse: a command without arguments prints its help; the error for an unknown word suggests the
nearest known one; the error for an option before its verb says where it belongs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

EXIT_FAILED = 1
EXIT_USAGE = 2


class CommandParser(argparse.ArgumentParser):
    """An ArgumentParser with helpful errors. chooses: the first argument is a word that decides what may follow."""

    def __init__(self, *arguments: Any, chooses: bool = False, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._chooses = chooses

    def add_subparsers(self, **settings: Any) -> Any:
        self._chooses = True
        return super().add_subparsers(**{"parser_class": CommandParser, **settings})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but unknown words are errors here, where the similar known ones are available."""
        words = list(sys.argv[1:] if args is None else args)
        if self._chooses:
            if not words:
                self.print_help(sys.stderr)
                self.exit(EXIT_USAGE)
            self._check_leading_options(words)
        known, extras = super().parse_known_args(words, namespace)
        if extras:
            self.error(self._about_extras(extras))
        return known, extras

    # -- for completion ------------------------------------------------------------------------------------------------

    def option(self, word: str) -> argparse.Action | None:
        """The option of this name."""
        return self._option_string_actions.get(word)

    def option_names(self) -> dict[str, str]:
        """The long names that the help shows, with a line about each."""
        return {
            name: (action.help or "").replace("%%", "%")
            for action in self._actions
            if action.help != argparse.SUPPRESS
            for name in action.option_strings
            if name.startswith("--")
        }

    def positional(self, at: int) -> argparse.Action | None:
        """What the word with this number, from 0 on, is for; None: there is no such word."""
        actions = self._get_positional_actions()
        if at < len(actions):
            return actions[at]
        return actions[-1] if actions and actions[-1].nargs in ("*", "+") else None

    def _check_leading_options(self, words: Sequence[str]) -> None:
        """Refuse an option that stands before the word it belongs to: its value would be taken for that word."""
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            name, separator, _ = words[at].partition("=")
            if not name.startswith("--"):
                name, separator = name[:2], name[2:]
            found = [option for option in self._option_string_actions if option == name]
            if name.startswith("--"):
                found = found or [option for option in self._option_string_actions if option.startswith(name)]
            if not found:
                self.error(
                    f"{name} can't be used here: options of a verb come after the verb; see `{self.prog} --help`"
                )
            takes_value = self._option_string_actions[found[0]].nargs != 0
            at += 1 if separator or not takes_value else 2

    def _about_extras(self, extras: Sequence[str]) -> str:
        word = extras[0]
        if not word.startswith("-"):
            hint = ": quotes keep a text with spaces together" if self._get_positional_actions() else ""
            return f"{' '.join(extras)!r} is too much{hint}; see `{self.prog} --help`"
        name = word.partition("=")[0]
        known = [option for option in self._option_string_actions if option.startswith("--")]
        return f"there is no option {name}{did_you_mean(name, known)}; see `{self.prog} --help`"

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as exc:
            what = {int: "whole number, such as 8", float: "number, such as 2.5"}.get(action.type)  # type: ignore[call-overload]
            if what is None:
                raise
            raise argparse.ArgumentError(action, f"{arg_string!r} is not a {what}") from exc

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        guess, known = did_you_mean(str(value), choices), ", ".join(choices)
        if action.option_strings or action.metavar is None:
            raise argparse.ArgumentError(action, f"{str(value)!r} is not one of {known}{guess}")
        what = str(action.metavar).lower()
        raise argparse.ArgumentError(None, f"there is no {what} {str(value)!r}{guess}; known: {known}")


def words_for(action: argparse.Action) -> dict[str, str]:
    """The words that an action knows, with a line about each; none where any word will do."""
    if isinstance(action, argparse._SubParsersAction):
        return {each.dest: each.help or "" for each in action._get_subactions()}
    return {str(word): "" for word in action.choices or ()}


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """The nearest known word as a question; empty when none is near."""
    import difflib  # only errors need it

    close = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {close[0]}?)" if close else ""
