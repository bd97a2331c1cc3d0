"""Look at a cluster and change it: this one or any RocketMQ 4.9 cluster.

  gantry admin cluster                            brokers, rates, disks
  gantry admin topics list                        also: show, create, set, delete, route, stats
  gantry admin groups lag GROUP                   also: list, show, create, delete
  gantry admin reset GROUP TOPIC --to 2h          what moving a group would do; --yes does it
  gantry admin messages query TOPIC --key K       also: show, at, print, tail, trace, resend, deliver
  gantry admin send TOPIC "some text"

`gantry admin NOUN --help` tells the verbs of one noun. Every command takes --json (one document; tail and print: a line
a message) and -n HOST:PORT for the name servers (also GANTRY_NAMESRV or NAMESRV_ADDR; default 127.0.0.1:9876). Commands
that change something take --dry-run; those that can lose something ask, unless --yes. An account comes from
GANTRYMQ_ACCESS_KEY and GANTRYMQ_SECRET_KEY, or a file named by GANTRYMQ_CREDENTIALS.

Exit codes: 0 done, 1 failed (or some broker did not answer), 2 the command was wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import sys

from appliance.cli.admin_command import Command, Failed, Shown, add_command, ask_first, open_admin
from appliance.cli.admin_output import print_document, print_lines
from gantrymq.errors import ConfigError, GantryError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

# noun: module that has its COMMANDS, and a line for the help
NOUNS = {
    "cluster": ("admin_cluster", "brokers of the cluster at a glance"),
    "brokers": ("admin_cluster", "one broker's figures"),
    "config": ("admin_cluster", "settings of brokers and name servers"),
    "kv": ("admin_namesrv", "the name servers' key-value store"),
    "perm": ("admin_namesrv", "take write permission from a broker, to drain it; give it back"),
    "clean": ("admin_namesrv", "drop expired queues, unused topics, expired log files"),
    "topics": ("admin_topics", "list, show, create, set, delete, route, stats"),
    "stats": ("admin_topics", "traffic of every topic and group"),
    "groups": ("admin_groups", "list, show, lag, create, delete"),
    "consumers": ("admin_groups", "who consumes, and what each consumer is doing"),
    "producers": ("admin_groups", "who produces"),
    "reset": ("admin_offsets", "move a group to a time, the begin or the end"),
    "clone": ("admin_offsets", "give a group another group's offsets"),
    "messages": ("admin_messages", "show, query, at, print, tail, trace, resend, deliver"),
    "send": ("admin_messages", "send a message"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    lines = "\n".join(f"  {noun:<10} {summary}" for noun, (_, summary) in NOUNS.items())
    parser.epilog = f"nouns:\n{lines}"
    parser.add_argument("noun", choices=NOUNS, metavar="NOUN", help="see below")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="…", help="verb and its arguments")


def run(arguments: argparse.Namespace) -> int:
    parsed = _parse(arguments.noun, arguments.rest)
    logging.getLogger("gantrymq").setLevel(logging.CRITICAL)  # what matters is said by the command itself
    try:
        return asyncio.run(_execute(parsed))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `gantry admin … | head`
        sys.stderr.close()
        return 0
    except (GantryError, OSError) as exc:
        return _fail(exc, parsed)


def _parse(noun: str, rest: list[str]) -> argparse.Namespace:
    """The chosen noun's parser only: building them all would take longer than most answers."""
    module = importlib.import_module(f"appliance.cli.{NOUNS[noun][0]}")
    commands: dict[str, Command] = module.COMMANDS[noun]
    prog = f"gantry admin {noun}"
    if list(commands) == [""]:
        parser = argparse.ArgumentParser(prog=prog, formatter_class=argparse.RawDescriptionHelpFormatter)
        add_command(parser, commands[""])
        return parser.parse_args(rest)
    parser = argparse.ArgumentParser(prog=prog, description=NOUNS[noun][1])
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="|".join(commands))
    for verb, command in commands.items():
        add_command(verbs.add_parser(verb, help=command.summary), command)
    return parser.parse_args(rest)


async def _execute(arguments: argparse.Namespace) -> int:
    command: Command = arguments.command
    async with open_admin(arguments) as admin:
        if command.loses and command.plan is not None and not arguments.dry_run:
            plan = await command.plan(admin, arguments)  # which also says what is wrong with the command
            if not arguments.yes:
                ask_first(plan, arguments)
        act = command.plan if command.changes and arguments.dry_run and command.plan is not None else command.act
        shown: Shown = await act(admin, arguments)
    if arguments.json:
        if shown.document is not None:
            print_document(shown.document)
    else:
        print_lines(shown.lines)
        if command.changes and arguments.dry_run:
            print("nothing was changed (--dry-run)")
    for trouble in shown.troubles:
        print(f"gantry admin: {trouble}", file=sys.stderr)
    return EXIT_FAILED if shown.troubles or shown.is_failure else 0


def _fail(failure: Exception, arguments: argparse.Namespace) -> int:
    text = Failed.explain(failure, arguments.namesrv)
    if arguments.json:
        print_document({"error": text})
    print(f"gantry admin: {text}", file=sys.stderr)
    return EXIT_USAGE if isinstance(failure, ConfigError) else EXIT_FAILED
