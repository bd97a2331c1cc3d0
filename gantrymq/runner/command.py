"""The command line of `python -m gantrymq`."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from gantrymq.app.application import App
from gantrymq.client.blocking.consumers import SyncPushConsumer
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.errors import ConfigError, GantryError
from gantrymq.runner.reload import run_reloading


def consumer_of(target: str) -> PushConsumer | SyncPushConsumer | App:
    """Import the module and return the consumer or application in it, or what a function without arguments makes.

    ConfigError when the text names none. What the module itself raises is raised.
    """
    module_name, separator, name = target.partition(":")
    if not (separator and module_name and name):
        raise ConfigError(f"{target!r}: module:consumer is wanted, such as shop.consumers:orders")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as exc:
        if exc.name is None or not f"{module_name}.".startswith(f"{exc.name}."):
            raise  # the module is there, and misses another one
        raise ConfigError(f"{target!r}: there is no module {exc.name} in the current folder or installed") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"{target!r}: {module_name} has no {name}") from None
    kinds = PushConsumer | SyncPushConsumer | App
    if callable(found) and not isinstance(found, kinds):
        found = found()
    if not isinstance(found, kinds):
        raise ConfigError(f"{target!r}: an App, PushConsumer or SyncPushConsumer is wanted, not {type(found).__name__}")
    return found


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
