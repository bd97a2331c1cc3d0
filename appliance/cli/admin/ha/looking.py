"""The record of one broker name, and what its members answer: what every verb looks at first."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass

from appliance.cli.admin.failures import NotThere
from appliance.failover.lease import RENEW_EVERY_S
from appliance.register.etcd import ANOTHER
from appliance.register.opening import open_etcd
from appliance.register.register import Register
from appliance.register.term import Term, View
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.members import Member
from gantrymq.client.admin.promotion import NO_REGISTER
from gantrymq.errors import ConfigError

FRESH_S = 2 * RENEW_EVERY_S  # a master that is there has renewed within it


@dataclass(frozen=True, slots=True)
class Seen:
    """The record, and what the members answer."""

    register: Register
    view: View
    members: list[Member]


async def look(admin: AdminClient, arguments: argparse.Namespace) -> Seen:
    members = (await admin.succession.known(arguments.broker)).members
    configs, _failures = await ask_each([each.address for each in members if each.answers], admin.brokers.config)
    told = next((config for config in configs.values() if config.get("etcdEndpoints")), {})
    endpoints = arguments.etcd or told.get("etcdEndpoints", "")
    if not endpoints:
        raise ConfigError(
            f"{NO_REGISTER}. No broker of {arguments.broker} that answers has etcdEndpoints: set it at all of them and "
            "start them again, or name etcd with --etcd"
        )
    cluster = arguments.cluster_name or next(
        (config["brokerClusterName"] for config in configs.values() if config.get("brokerClusterName")), ""
    )
    if not cluster:
        raise ConfigError("no broker answers that names its cluster: use --cluster-name")
    client = open_etcd(endpoints, arguments.etcd_user, arguments.etcd_password_file, arguments.etcd_ca)
    register = Register(client, cluster, arguments.broker)
    return Seen(register, await register.view(), members)


async def look_at_record(admin: AdminClient, arguments: argparse.Namespace, *, else_: str = "") -> tuple[Seen, Term]:
    """The same of a name that etcd has on record. else_: what to do otherwise. Raises NotThere."""
    seen = await look(admin, arguments)
    if seen.view.term is None:
        raise NotThere(f"etcd has no record of {arguments.broker}{else_}")
    return seen, seen.view.term


async def has_renewed(seen: Seen) -> bool:
    """Whether the master renews in the time in which one that is there does. ConfigError: another etcd answers then."""
    await asyncio.sleep(FRESH_S)
    view = await seen.register.view()
    if view.cluster_id != seen.view.cluster_id:
        raise ConfigError(f"{ANOTHER}: whether the master renews is not known. Nothing was changed")
    return view.beat_revision != seen.view.beat_revision


def broker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="name that its master and slaves share")
    parser.add_argument(
        "--etcd", metavar="URL", help="http://HOST:PORT, several with ',' (default: as the brokers say)"
    )
    parser.add_argument("--etcd-user", default="", metavar="NAME", help="user of etcd")
    parser.add_argument("--etcd-password-file", default="", metavar="FILE", help="its password, in the first line")
    parser.add_argument("--etcd-ca", default="", metavar="FILE", help="authorities of etcd's certificates (PEM)")
    parser.add_argument("--cluster-name", metavar="NAME", help="cluster of the broker (default: as the brokers say)")
