"""`gantry admin accounts`: who may use the brokers. Secrets are asked for, read from standard input or made up; the
only one ever printed is one that was made up, once."""

from __future__ import annotations

import argparse
import dataclasses

from appliance.cli.admin.account_brokers import Masters, add_where, known_at, known_everywhere, masters_of
from appliance.cli.admin.account_format import (
    COLUMNS,
    cells,
    parse_default,
    parse_permission,
    parse_secret_source,
    parse_word,
    secret_for,
)
from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere, troubles_of
from appliance.cli.admin.options import speaks_tls
from appliance.cli.admin.output import when
from appliance.cli.admin.white_list import WHITE_LIST
from appliance.cli.tables import facts, table
from gantrymq.client.admin.accounts import Account, AccountList, with_permissions
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ConfigError, PartlyDone
from gantrymq.remoting.signature import Credentials

LOCAL = ("127.", "localhost:", "[::1]")


def _find(known: AccountList, access_key: str) -> Account | None:
    return next((account for account in known.accounts if account.access_key == access_key), None)


# -- looking ----------------------------------------------------------------------------------------------------------


async def list_accounts(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    lists, failures = await known_at(admin, await masters_of(admin, arguments))
    at: list[tuple[Account, list[str]]] = []  # the same account with the brokers that have it just so
    for name, known in lists.items():
        for account in known.accounts:
            same = next((names for other, names in at if other == account), None)
            if same is None:
                at.append((account, [name]))
            else:
                same.append(name)
    at.sort(key=lambda pair: pair[0].access_key)
    rows = [(account.access_key, *cells(account), ", ".join(names)) for account, names in at]
    lines = table(("access key", *COLUMNS, "brokers"), rows, empty="no accounts: `accounts set KEY` makes one")
    white = {name: known.white_addresses for name, known in lists.items()}
    lines += ["", *table(("broker", "addresses that need no account"),
                         [(name, ", ".join(patterns) or "none") for name, patterns in white.items()])]  # fmt: skip
    document = {
        "accounts": [{**account.to_dict(), "brokers": names} for account, names in at],
        "whiteAddresses": white,
    }
    return Shown(document, lines, troubles_of(failures))


async def show_account(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    lists, failures = await known_at(admin, await masters_of(admin, arguments))
    found = {name: _find(known, arguments.key) for name, known in lists.items()}
    if not any(found.values()):
        raise NotThere(f"there is no account {arguments.key}: `accounts list` lists them")
    lines: list[str] = []
    for name, account in found.items():
        values = cells(account) if account is not None else [None] * len(COLUMNS)
        title = ("account", arguments.key if account is not None else f"no {arguments.key} here")
        lines += [*([""] if lines else []), *facts([("broker", name), title, *zip(COLUMNS, values, strict=True)])]
    return Shown({"accessKey": arguments.key, "brokers": found}, lines, troubles_of(failures))


async def show_version(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await masters_of(admin, arguments)
    versions, failures = await ask_each(masters, lambda name: admin.accounts.version_at(masters[name]))
    if not versions:
        raise next(iter(failures.values()))
    rows = [
        (name, path, version.counter, when(version.timestamp))
        for name, each in versions.items()
        for path, version in (each.files or {"": each.version}).items()
    ]
    lines = table(("broker", "file", "version", "changed"), rows)
    return Shown(list(versions.values()), lines, troubles_of(failures))


# -- changing ---------------------------------------------------------------------------------------------------------


async def plan_set(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    return _changes(arguments.key, await _plan(admin, await masters_of(admin, arguments), arguments))


async def _plan(
    admin: AdminClient, masters: Masters, arguments: argparse.Namespace
) -> dict[str, tuple[Account | None, Account]]:
    """The account before (None: there is none) and after, by broker."""
    plan: dict[str, tuple[Account | None, Account]] = {}
    for name, known in (await known_everywhere(admin, masters)).items():
        before = _find(known, arguments.key)
        base = before or Account(arguments.key)
        plan[name] = (
            before,
            dataclasses.replace(
                base,
                admin=base.admin if arguments.admin is None else arguments.admin,
                default_topic_perm=arguments.default_topic or base.default_topic_perm,
                default_group_perm=arguments.default_group or base.default_group_perm,
                topic_perms=with_permissions(base.topic_perms, dict(arguments.topic or ())),
                group_perms=with_permissions(base.group_perms, dict(arguments.group or ())),
                white_remote_address=(
                    base.white_remote_address if arguments.white_address is None else arguments.white_address
                ),
            ),
        )
    if arguments.secret is None and all(before == after for before, after in plan.values()):
        raise ConfigError(
            f"{arguments.key} is so already: say what to change, such as --topic orders=PUB+SUB or --secret generate"
        )
    return plan


def _changes(access_key: str, plan: dict[str, tuple[Account | None, Account]]) -> Shown:
    rows = [
        (name, which, *(cells(account) if account is not None else [None] * len(COLUMNS)))
        for name, both in plan.items()
        for which, account in zip(("before", "after"), both, strict=True)
    ]
    brokers = {name: {"before": before, "after": after} for name, (before, after) in plan.items()}
    return Shown({"accessKey": access_key, "brokers": brokers}, table(("broker", "", *COLUMNS), rows))


async def set_account(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await masters_of(admin, arguments)
    plan = await _plan(admin, masters, arguments)
    is_new = any(before is None for before, _ in plan.values())
    secret, is_made_up = secret_for(arguments.key, arguments.secret, is_new=is_new)
    troubles: list[str] = []
    try:
        done = await admin.accounts.set({name: after for name, (_, after) in plan.items()}, masters, secret_key=secret)
    except PartlyDone as exc:  # some brokers have the secret now: it must be shown
        if not exc.done:
            raise
        done, troubles = exc.done, troubles_of(exc.failures)
    shown = _changes(arguments.key, {name: plan[name] for name in done})
    lines = list(shown.lines)
    if is_made_up:
        lines += ["", *facts([("access key", arguments.key), ("secret key", secret)]), "The secret is shown this once."]
        shown.document["secretKey"] = secret
    elif secret is not None:
        lines.append("the secret was set")
    far = sorted(masters[name] for name in done if not masters[name].startswith(LOCAL))
    if secret is not None and far and not speaks_tls(arguments):
        troubles.append(f"the secret went to {', '.join(far)} without TLS: others may have read it on the way")
    return Shown(shown.document, lines, troubles)


async def plan_delete(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    lists = await known_everywhere(admin, await masters_of(admin, arguments))
    brokers = [name for name, known in lists.items() if _find(known, arguments.key) is not None]
    if not brokers:
        raise NotThere(f"there is no account {arguments.key}: `accounts list` lists them")
    lines = [f"delete account {arguments.key} at {', '.join(brokers)}: its clients are refused from then on"]
    own = Credentials.from_environment()
    if own is not None and own.access_key == arguments.key:
        lines.append("this command signs with that account: it could do nothing more")
    return Shown({"accessKey": arguments.key, "brokers": brokers}, lines)


async def delete_account(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    done = await admin.accounts.delete(arguments.key, await masters_of(admin, arguments))
    return Shown({"accessKey": arguments.key, "brokers": done}, [f"{arguments.key} deleted at {', '.join(done)}"])


# -- options ----------------------------------------------------------------------------------------------------------


def _key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", type=parse_word, metavar="KEY", help="access key of the account")
    add_where(parser)


def _set_arguments(parser: argparse.ArgumentParser) -> None:
    _key(parser)
    add = parser.add_argument
    add("--secret", type=parse_secret_source, metavar="ask|stdin|generate",
        help="source of a new secret; default: ask for a new account's, keep an existing one's "
        "(RocketMQ's own brokers want it with each change)")  # fmt: skip
    add(
        "--admin",
        action=argparse.BooleanOptionalAction,
        help="administrator; without --topic and --group allowed everything else, too",
    )
    add("--topic", action="append", type=parse_permission, metavar="NAME=PERM",
        help="repeatable: orders=PUB, prices=SUB, both=PUB+SUB, secrets=DENY; NAME=default: as for others")  # fmt: skip
    add("--group", action="append", type=parse_permission, metavar="NAME=PERM",
        help="repeatable: readers=SUB lets it consume as that group")  # fmt: skip
    add(
        "--default-topic",
        type=parse_default,
        metavar="PERM",
        help="for topics that are not named (a new one's: DENY)",
    )
    add(
        "--default-group",
        type=parse_default,
        metavar="PERM",
        help="for groups that are not named (a new one's: DENY)",
    )
    add("--white-address", metavar="PATTERN",
        help="addresses from which this account needs no signature: 10.1.2.*; '' for none")  # fmt: skip


COMMANDS = {
    "accounts": {
        "list": Command("every account, and the addresses that need none", list_accounts, add_where),
        "show": Command("one account at each broker", show_account, _key),
        "set": Command(
            "create or change an account", set_account, _set_arguments, plan_set, aliases=("create", "update")
        ),
        "delete": Command("delete an account", delete_account, _key, plan_delete, loses=True, aliases=("remove",)),
        "white-list": WHITE_LIST,
        "version": Command("version of the accounts file at each broker", show_version, add_where),
    }
}
