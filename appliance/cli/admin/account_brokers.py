"""Which brokers a command of `gantry admin accounts` is about, and what they know."""

from __future__ import annotations

import argparse

from appliance.cli.admin.cluster import choose_brokers
from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.options import add_cluster
from gantrymq.client.admin.accounts import AccountList
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import GantryError, PartlyDone

Masters = dict[str, str]  # broker name to address


async def masters_of(admin: AdminClient, arguments: argparse.Namespace) -> Masters:
    if arguments.broker:
        return {each.name: each.address for each in await choose_brokers(admin, arguments.broker)}
    masters = await admin.cluster.masters(arguments.cluster)
    if not masters:
        raise NotThere("no broker is registered at the name server")
    return masters


async def known_at(admin: AdminClient, masters: Masters) -> tuple[dict[str, AccountList], dict[str, GantryError]]:
    """What each broker knows. Raises what the first one raised when none answers."""
    lists, failures = await ask_each(masters, lambda name: admin.accounts.all_at(masters[name]))
    if not lists:
        raise next(iter(failures.values()))
    return lists, failures


async def known_everywhere(admin: AdminClient, masters: Masters) -> dict[str, AccountList]:
    """What each broker knows, before a change. PartlyDone when one does not tell: it could not be changed, either."""
    lists, failures = await known_at(admin, masters)
    if failures:
        raise PartlyDone([], failures)
    return lists


def add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-b", "--broker", action="append", metavar="NAME", help="only this broker; repeatable")
    add_cluster(parser)
