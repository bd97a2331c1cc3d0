"""`gantry admin accounts white-list`: addresses that need no account."""

from __future__ import annotations

import argparse

from appliance.cli.admin.account_brokers import add_where, known_at, known_everywhere, masters_of
from appliance.cli.admin.account_format import parse_word
from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere, troubles_of
from appliance.cli.tables import table
from gantrymq.client.admin.accounts import AccountList
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ConfigError


async def plan_white_list(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    lists = await known_everywhere(admin, await masters_of(admin, arguments))
    return _white_changes(lists, {name: _white_after(known, arguments) for name, known in lists.items()})


def _white_after(known: AccountList, arguments: argparse.Namespace) -> list[str]:
    """The addresses that need no account after the command."""
    has_changes = bool(arguments.add or arguments.remove)
    if (arguments.patterns and (has_changes or arguments.clear)) or (arguments.clear and has_changes):
        raise ConfigError("give a whole list, or --add and --remove, or --clear")
    if not (arguments.patterns or has_changes or arguments.clear):
        raise ConfigError(
            "say which addresses need no account: 10.1.2.*, --add 10.1.2.3, --remove 10.1.2.3 or --clear; "
            "`accounts list` shows them"
        )
    if not has_changes:
        return list(arguments.patterns)
    missing = [each for each in arguments.remove or () if each not in known.white_addresses]
    if missing:
        raise NotThere(f"{', '.join(missing)} is not on the list: {', '.join(known.white_addresses) or 'it is empty'}")
    kept = [each for each in known.white_addresses if each not in (arguments.remove or ())]
    return list(dict.fromkeys([*kept, *(arguments.add or ())]))


def _white_changes(lists: dict[str, AccountList], after: dict[str, list[str]]) -> Shown:
    rows = [
        (name, which, ", ".join(patterns) or "none")
        for name in after
        for which, patterns in (("before", lists[name].white_addresses), ("after", after[name]))
    ]
    document = {name: {"before": lists[name].white_addresses, "after": after[name]} for name in after}
    return Shown(document, table(("broker", "", "addresses that need no account"), rows))


async def set_white_list(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await masters_of(admin, arguments)
    lists = await known_everywhere(admin, masters)
    wanted = {name: _white_after(known, arguments) for name, known in lists.items()}
    await admin.accounts.set_white_addresses(wanted, masters, file=arguments.file)
    after, failures = await known_at(admin, masters)
    troubles = troubles_of(failures)
    for name, known in after.items():
        more = sorted(set(known.white_addresses) - set(wanted[name]))
        if more:
            troubles.append(
                f"broker {name} lets in {', '.join(more)}, too: another of its files says so (`accounts version` lists "
                "them, --file names one)"
            )
    shown = _white_changes(lists, {name: known.white_addresses for name, known in after.items()})
    return Shown(shown.document, shown.lines, troubles)


def _white_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patterns", nargs="*", type=parse_word, metavar="PATTERN", help="the whole list: 10.1.2.*")
    parser.add_argument("--add", action="append", type=parse_word, metavar="PATTERN", help="repeatable")
    parser.add_argument("--remove", action="append", type=parse_word, metavar="PATTERN", help="repeatable")
    parser.add_argument("--clear", action="store_true", help="no address")
    parser.add_argument("--file", default="", metavar="PATH", help="file at the broker; default: its plain_acl.yml")
    add_where(parser)


WHITE_LIST = Command(
    "set the addresses that need no account", set_white_list, _white_arguments, plan_white_list, loses=True
)
