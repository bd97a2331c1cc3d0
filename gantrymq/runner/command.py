"""The command line of `python -m gantrymq`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from gantrymq.client.blocking.consumers import SyncPushConsumer
from gantrymq.errors import GantryError
from gantrymq.runner.reload import run_reloading
from gantrymq.runner.target import consumer_of

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
EXIT_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    logging.basicConfig(level=options.log_level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        if options.reload:
            rest = [argument for argument in given if argument != "--reload"]
            return run_reloading([sys.executable, "-m", "gantrymq", *rest], Path.cwd())
        consumer = consumer_of(options.target)
        return consumer.run() if isinstance(consumer, SyncPushConsumer) else asyncio.run(consumer.run())
    except GantryError as exc:
        print(f"gantrymq run: {exc}", file=sys.stderr)
        return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gantrymq", description="GantryMQ's client SDK.", allow_abbrev=False
    )
    run = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "run",
        help="consume until SIGTERM or SIGINT",
        description="Consume until SIGTERM or SIGINT. Calls in progress may end, and what was handled is committed.",
        allow_abbrev=False,
    )
    run.add_argument("target", metavar="MODULE:CONSUMER", help="an App or push consumer, or what makes one")
    run.add_argument("--reload", action="store_true", help="restart when a .py file below this folder changes")
    run.add_argument("--log-level", default="INFO", choices=LEVELS, help="default: INFO")
    return parser
