"""`manage.py consume`: the project's consumers as a process."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.autoreload import get_child_arguments

from gantrymq.contrib.django import consuming
from gantrymq.errors import GantryError
from gantrymq.runner.reload import run_reloading

RELOAD = "--reload"


class Command(BaseCommand):
    """See `help`."""

    help = (
        "Consume with the functions marked by gantrymq.contrib.django.consumer, until SIGTERM or SIGINT. Then calls in "
        "progress may end, and what was handled is committed; the exit code is 1 when a call did not end in time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The groups and `--reload`."""
        parser.add_argument("groups", nargs="*", metavar="GROUP", help="only for these groups; without: for all")
        parser.add_argument(RELOAD, action="store_true", help="restart when a .py file below this folder changes")

    def handle(self, *arguments: Any, groups: list[str], reload: bool, **options: Any) -> None:
        """Run until a signal comes; ends the process with the exit code."""
        if reload:
            command = [each for each in get_child_arguments() if each != RELOAD]
            sys.exit(run_reloading(command, Path.cwd()))
        try:
            found = consuming.registered(groups)
            consumers = [consuming.made(each) for each in found]
            code = consuming.run(consumers, lambda: self._tell(found))
        except GantryError as exc:
            raise CommandError(str(exc)) from exc
        sys.exit(code)

    def _tell(self, found: list[consuming.Registered]) -> None:
        for each in found:
            self.stdout.write(f"{each.group} consumes {each.topic}: {each.place}")
        self.stdout.flush()
