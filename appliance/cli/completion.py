"""Completion of this command in a shell: commands, nouns, verbs, options and their values.

  source <(gantry completion bash)               for this shell; in ~/.bashrc for each
  source <(gantry completion zsh)                in ~/.zshrc, after compinit
  gantry completion fish | source                in ~/.config/fish/config.fish

The script asks `gantry completion words` at each TAB, which reads the parsers of this version: nothing has to be
installed again after an upgrade. Where no word is known the shell completes names of files.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping, Sequence

from appliance.cli.commands import COMMANDS, parser_of
from appliance.cli.parser import CommandParser, words_for

NOUNS_OF = {"admin": "appliance.cli.admin.main"}
SHELLS = {
    "bash": r"""_gantry() {
    local -a words
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}." # bash itself splits addresses at their colons
    words[-1]=${words[-1]%.}
    mapfile -t COMPREPLY < <("${words[0]}" completion words -- "${words[@]:1}" 2>/dev/null | cut -f 1)
}
complete -o default -F _gantry gantry
""",
    "zsh": r"""#compdef gantry
_gantry() {
    local -a found
    local word about tab=$'\t'
    while IFS=$tab read -r word about; do found+=("${word//:/\\:}:$about"); done \
        < <("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe gantry found; else _files; fi
}
compdef _gantry gantry
""",
    "fish": r"""function __gantry_words
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] completion words -- $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c gantry -f -a '(__gantry_words)'
""",
}
ASKED = "words"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=[*SHELLS, ASKED], metavar="SHELL", help=", ".join(SHELLS))
    parser.add_argument("words", nargs="*", metavar="WORD", help="with `words`: the line up to the cursor")


def run(arguments: argparse.Namespace) -> int:
    if arguments.shell in SHELLS:
        print(SHELLS[arguments.shell], end="")
        return 0
    for word, about in candidates(arguments.words):
        print(f"{word}\t{about}")
    return 0


def candidates(words: Sequence[str]) -> list[tuple[str, str]]:
    """What the last word can become, each with a line about it; empty: nothing is known, it may be a file.

    words: the line without `gantry`; the last one is begun, or empty."""
    *before, begun = words or [""]
    found = _next_words(before, begun)
    return sorted((word, _line(about)) for word, about in found.items() if word.startswith(begun))


def _next_words(before: Sequence[str], begun: str) -> Mapping[str, str]:
    if not before:
        return COMMANDS
    if before[0] not in COMMANDS:
        return {}
    place = _Place(parser_of(before[0]), NOUNS_OF.get(before[0]))
    for word in before[1:]:
        place.take(word)
    return place.next_words(begun)


class _Place:
    """How far a line has come in the parsers. nouns: a room of further parsers, which this one's first word names."""

    def __init__(self, parser: CommandParser, nouns: str | None = None) -> None:
        self._parser = parser
        self._nouns = importlib.import_module(nouns) if nouns else None
        self._positionals = 0
        self._waiting: argparse.Action | None = None  # an option whose value is the next word

    def take(self, word: str) -> None:
        if self._waiting is not None:
            self._waiting = None
        elif word.startswith("-"):
            option = self._parser.option(word)
            self._waiting = option if option is not None and option.nargs != 0 else None
        elif self._nouns is not None and word in self._nouns.NOUNS:
            self._go_to(self._nouns.parser_of(word))
            self._nouns = None
        else:
            action = self._parser.positional(self._positionals)
            below = action.choices.get(word) if action is not None and isinstance(action.choices, dict) else None
            if isinstance(below, CommandParser):
                self._go_to(below)
            else:
                self._positionals += 1

    def next_words(self, begun: str) -> Mapping[str, str]:
        if self._waiting is not None:
            return words_for(self._waiting)
        if begun.startswith("-"):
            return self._parser.option_names()
        if self._nouns is not None:
            return {noun: about for noun, (_, about) in self._nouns.NOUNS.items()}
        action = self._parser.positional(self._positionals)
        return words_for(action) if action is not None else {}

    def _go_to(self, parser: CommandParser) -> None:
        self._parser, self._positionals = parser, 0


def _line(about: str) -> str:
    return " ".join(about.split())
