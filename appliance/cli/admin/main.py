"""Inspect and change a cluster: this one or any RocketMQ 4.9 cluster.

  gantry admin cluster                            brokers, rates, disks
  gantry admin topics list                        also: show, create, set, delete, route, stats
  gantry admin groups lag GROUP                   also: list, show, create, delete
  gantry admin reset GROUP TOPIC --to 2h          what resetting its offsets would do; --yes does it
  gantry admin dead-letters list                  also: export, resend, discard
  gantry admin messages query TOPIC --key K       also: show, at, print, tail, trace, resend, deliver
  gantry admin send TOPIC "some text"             --tag, --key, --property, --delay-seconds
  gantry admin switchover BROKER                  exchange master and slave; promote BROKER if the master is lost
  gantry admin clients list                       connected clients; also: disconnect CLIENT
  gantry admin accounts list                      also: show, set, delete, white-list, version

These call the dashboard and need an API token in GANTRY_TOKEN or --token-file (`gantry users token NAME` creates one):

  gantry admin alerts list --open                 also: alert-rules, alert-channels, mutes
  gantry admin definitions diff FILE              also: export, apply FILE
  gantry admin users list                         also: invitations, tokens, password
  gantry admin reports runs                       also: saved-searches, topic-changes, dead-letter-runs, pause, resume

`gantry admin NOUN --help` lists the verbs of one noun, `gantry admin NOUN VERB --help` the options of one verb. --json
prints one document (tail and print: one line per message). Name servers: -n HOST:PORT, or GANTRY_NAMESRV or
NAMESRV_ADDR; the dashboard: --dashboard URL, or GANTRY_DASHBOARD. Commands that change something have --dry-run;
destructive ones ask for confirmation, and --yes skips it. Set an account with GANTRYMQ_ACCESS_KEY and
GANTRYMQ_SECRET_KEY, or with a file named by GANTRYMQ_CREDENTIALS.

Exit codes: 0 done; 1 not found, failed, or a broker did not answer; 2 wrong usage or --yes is missing: nothing was
changed; 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys

from appliance.cli.admin.command import Command, Shown, add_command, ask_first, sentence
from appliance.cli.admin.failures import NotThere, explain_failure
from appliance.cli.admin.options import add_common, tls_hint, with_defaults
from appliance.cli.admin.output import print_document, print_lines
from appliance.cli.parser import EXIT_FAILED, EXIT_USAGE, CommandParser
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ConfigError, GantryError, MessageRejected

EXIT_INTERRUPTED = 130

# noun: module that has its COMMANDS, and a line for the help
NOUNS = {
    "cluster": ("cluster", "brokers of the cluster at a glance"),
    "brokers": ("cluster", "brokers and their metrics"),
    "promote": ("succession", "promote a slave when the master is lost for good"),
    "settle": ("succession", "choose the log that counts when two masters began the same epoch"),
    "switchover": ("succession", "master and slave exchange roles; nothing is lost"),
    "ha": ("ha.verbs", "epochs and in-sync sets in etcd: start, show, explain"),
    "config": ("cluster", "settings of brokers and name servers"),
    "kv": ("namesrv", "the name servers' key-value store"),
    "perm": ("namesrv", "stop and allow writes to a broker, in routes only"),
    "drain": ("draining.verbs", "take a broker out of service: no new writes, groups finish, then it stops"),
    "undrain": ("draining.verbs", "undo a drain"),
    "clean": ("namesrv", "remove expired queues, unused topics, expired log files"),
    "topics": ("topics", "topics: their queues, permission, attributes, traffic"),
    "stats": ("topics", "traffic of every topic and group"),
    "groups": ("groups", "consumer groups: their settings, members, lag"),
    "clients": ("clients", "connections of clients; disconnect one"),
    "consumers": ("clients", "connected consumers, and what each is doing"),
    "producers": ("clients", "connected producers"),
    "reset": ("rest.offsets", "reset a group's offsets: to a time, by a shift, as they were before"),
    "clone": ("rest.offsets", "copy another group's offsets"),
    "dead-letters": ("dead_letters.verbs", "messages that used up their retries: list, export, resend, discard"),
    "messages": ("messages", "messages: find, read, follow, resend"),
    "send": ("messages", "send a message"),
    "accounts": ("accounts", "accounts of clients, and addresses that need none"),
    "pause": ("rest.table", "pause a consumer group"),
    "resume": ("rest.table", "resume a paused consumer group"),
    "saved-searches": ("rest.table", "your saved searches of a topic's messages"),
    "topic-changes": ("rest.table", "one change for many topics: start, follow, stop"),
    "dead-letter-runs": ("rest.table", "runs that resend dead letters: start, follow, stop, resume"),
    "definitions": ("rest.definitions", "topics, groups, accounts, alerts as one YAML file: export, diff, apply"),
    "alerts": ("rest.table", "open and past alerts, and the notifications sent"),
    "alert-rules": ("rest.table", "rules that open alerts"),
    "alert-channels": ("rest.table", "where alerts are sent; send a test"),
    "mutes": ("rest.table", "no notifications for a time"),
    "users": ("rest.table", "accounts of the dashboard: role, names, sessions, tokens"),
    "invitations": ("rest.table", "invite users to the dashboard"),
    "tokens": ("rest.table", "your API tokens"),
    "password": ("rest.table", "change your password"),
    "reports": ("rest.table", "reports of the dashboard: runs, schedule, promises, weekly mail"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    lines = "\n".join(f"  {noun:<16} {summary}" for noun, (_, summary) in NOUNS.items())
    parser.epilog = f"nouns:\n{lines}"
    parser.usage = "gantry admin NOUN [VERB] …"
    parser.add_argument("noun", choices=NOUNS, metavar="NOUN", help=argparse.SUPPRESS)  # see the epilog
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="…", help=argparse.SUPPRESS)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    common = {name: value for name, value in vars(arguments).items() if name not in ("noun", "rest")}
    parsed = parse(arguments.noun, arguments.rest, argparse.Namespace(**common))
    try:
        return asyncio.run(_execute(with_defaults(parsed)))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `gantry admin … | head`
        sys.stderr.close()
        return 0
    except (GantryError, OSError) as exc:
        return _fail(exc, parsed)


def parse(noun: str, rest: list[str], common: argparse.Namespace | None = None) -> argparse.Namespace:
    return parser_of(noun).parse_args(_joined(rest), common)


def parser_of(noun: str) -> CommandParser:
    """The parser of what follows a noun: that one only, building them all would take longer than most answers."""
    module = importlib.import_module(f"appliance.cli.admin.{NOUNS[noun][0]}")
    commands: dict[str, Command] = module.COMMANDS[noun]
    prog = f"gantry admin {noun}"
    if list(commands) == [""]:
        parser = CommandParser(prog=prog)
        add_command(parser, commands[""])
        return parser
    parser = CommandParser(prog=prog, description=sentence(NOUNS[noun][1]), usage=f"{prog} VERB …")
    parser.epilog = (
        f"`{prog} VERB --help` tells the options of one verb, `gantry admin --help` those of all (-n, --json)."
    )
    add_common(parser, shown=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    for verb, command in commands.items():
        add_command(
            verbs.add_parser(verb, help=command.summary, aliases=command.aliases, prog=f"{prog} {verb}"), command
        )
    return parser


def _joined(words: list[str]) -> list[str]:
    """`--attribute -NAME` as one word, as argparse would take -NAME for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--attribute" and word.startswith("-") and not word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


async def _execute(arguments: argparse.Namespace) -> int:
    command: Command = arguments.command
    async with command.opens(arguments) as admin:
        if isinstance(admin, AdminClient):
            await _check_cluster(admin, getattr(arguments, "cluster", None))
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


async def _check_cluster(admin: AdminClient, cluster: str | None) -> None:
    """NotThere when the cluster that the command names is unknown: the same words and code whatever the verb."""
    if cluster is not None and cluster not in (known := (await admin.cluster.info()).cluster_addr_table):
        raise NotThere(f"there is no cluster {cluster}; known: {', '.join(sorted(known)) or 'none'}")


def _fail(failure: Exception, arguments: argparse.Namespace) -> int:
    text = explain_failure(failure, getattr(arguments, "namesrv", "")) + tls_hint(failure, arguments)
    if getattr(arguments, "json", False):
        print_document({"error": text})
    print(f"gantry admin: {text}", file=sys.stderr)
    return EXIT_USAGE if isinstance(failure, ConfigError | MessageRejected) else EXIT_FAILED
