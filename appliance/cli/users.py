"""Manage the users of the dashboard, from a shell on its machine; the appliance does not have to run.

  gantry users list
  gantry users add ada --role operator            # asks for the password; --password-stdin reads it from a pipe
  gantry users roles                              # what each role can do
  gantry users roles ada reader
  gantry users limit ada orders- billing-         # only names that begin so; --all removes the limit
  gantry users reset-password ada                 # ends the account's sessions
  gantry users unlock ada                         # forget wrong passwords
  gantry users sessions                           # who is logged in, from where
  gantry users sessions --end 3f9a2c41d7          # or ada --end-all
  export GANTRY_TOKEN=$(gantry users token ada --scope admin)   # an API token, for `gantry admin` and curl

Run it as the user who owns the data folder; with `database_url` the accounts are in PostgreSQL, and GANTRY_DATABASE_URL
or gantry.toml says where. A password can't be given on the command line, where others could see it.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import sys
from pathlib import Path

from appliance.settings.appliance_config import ApplianceConfig, describe
from appliance.settings.variables import CONFIG_VARIABLE
from appliance.supervisor.gantry_command import gantry_environment
from gantrymq.errors import GantryError

DATABASE = "db.sqlite3"


class NoDatabase(GantryError):
    """There is no database of accounts, or this user may not open it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, summary: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = verbs.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        made.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: gantry.toml, if there)")
        made.add_argument("--data", type=Path, metavar="DIR", help=describe("data"))
        return made

    _json(verb("list", "accounts: role, last log-in, sessions, API tokens, and where they are locked"))
    add = verb("add", "create an account")
    add.add_argument("name", metavar="NAME", help="letters, digits and . @ + - _")
    add.add_argument("--role", default="reader", metavar="ROLE", help="reader, operator or admin (default: reader)")
    _password(add)
    roles = verb("roles", "what each role can do; with a name and a role, give the account that role")
    roles.add_argument("name", nargs="?", metavar="NAME", help="the account that gets another role")
    roles.add_argument("role", nargs="?", metavar="ROLE", help="reader, operator or admin")
    _json(roles)
    limit = verb("limit", "show or change the name prefixes of the topics and groups that an account sees")
    limit.add_argument("name", metavar="NAME")
    which_names = limit.add_mutually_exclusive_group()
    which_names.add_argument("prefixes", nargs="*", metavar="PREFIX", default=[], help="the beginning of names")
    which_names.add_argument("--all", action="store_true", help="every topic and group again")
    reset = verb("reset-password", "set an account's password, end its sessions, forget its wrong passwords")
    reset.add_argument("name", metavar="NAME")
    reset.add_argument("--revoke-tokens", action="store_true", help="end its API tokens too")
    _password(reset)
    unlock = verb("unlock", "forget wrong passwords, which unlocks")
    which = unlock.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?", metavar="NAME", help="those at this account")
    which.add_argument("--address", metavar="ADDRESS", help="those from this address")
    which.add_argument("--all", action="store_true", help="all of them")
    sessions = verb("sessions", "who is logged in; end sessions")
    sessions.add_argument("name", nargs="?", metavar="NAME", help="only those of this account")
    sessions.add_argument("--end", action="append", metavar="ID", help="end this session; may be repeated")
    sessions.add_argument("--end-all", action="store_true", help="end all of them, or all of NAME")
    _json(sessions)
    token = verb("token", "create an API token for an account and print it; it is not shown again")
    token.add_argument("name", metavar="NAME", help="whose token")
    token.add_argument("--scope", default="read", metavar="SCOPE",
                       help="metrics, read, write, config or admin (default: read)")  # fmt: skip
    token.add_argument("--days", type=int, default=7, choices=(7, 30, 90, 365), help="how long it is good (default: 7)")
    token.add_argument(
        "--as", dest="label", default="shell", metavar="TEXT", help="what lists call it (default: shell)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Become `python -m dashboard users`, which has access to the accounts. Returns only after an error."""
    options = dict(vars(arguments))
    config = ApplianceConfig.load({"data": options.pop("data")}, config_file=options.pop("config"))
    if not config.database_url:
        check_database(config.dashboard_folder / DATABASE)
    environment = {**os.environ, **config.to_environment(), **gantry_environment()}
    environment.pop(CONFIG_VARIABLE, None)  # what it said is in the variables now
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-P", "-m", "dashboard", "users", json.dumps(options)], environment)


def check_database(path: Path) -> None:
    """Refuse other users than the owner: SQLite would create files beside it that the appliance can't open."""
    try:
        owner = path.stat().st_uid
    except FileNotFoundError:
        raise NoDatabase(
            f"no accounts in {path.parent.parent}: start the appliance there once, or name its folder with --data"
        ) from None
    except PermissionError as exc:
        raise NoDatabase(f"{path}: {exc.strerror}; run this as the user who owns the data folder") from exc
    if owner != os.geteuid():
        raise NoDatabase(f"{path} belongs to {_name_of(owner)}: run this as that user (sudo -u {_name_of(owner)} …)")


def _name_of(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"#{user_id}"


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _password(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--password-stdin", action="store_true", help="read the password from standard input, its first line"
    )
