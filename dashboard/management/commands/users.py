"""The implementation of `gantry users`, which parses the command line and passes its options as JSON."""

from __future__ import annotations

import getpass
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from appliance.cli.tables import table
from dashboard.access import lockout
from dashboard.access.known_browsers import account_key
from dashboard.access.permissions import ROLE_PERMISSIONS
from dashboard.access.tokens import TooManyTokens, create_token
from dashboard.audit.chain import Change, append
from dashboard.models.audit import Way
from dashboard.models.identities import Identity
from dashboard.models.management import ApiToken, Role, User
from dashboard.people import user_accounts
from dashboard.people.user_accounts import OpenSession, UserProblem

PASSWORD_CHARS_MAX = 1024
TOKEN_NAME_MAX = 64
Request = dict[str, Any]


class Command(BaseCommand):
    help = "Users of the dashboard (the same as `gantry users`)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("request", type=json.loads, help="the options of `gantry users`, as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        request: Request = options["request"]
        try:
            _check_version()
            lines = list(VERBS[request["verb"]](request))
            _write_down(request, lines)
        except (UserProblem, DatabaseError, KeyboardInterrupt) as exc:
            print(f"gantry users: {exc or 'nothing was changed'}", file=sys.stderr)
            sys.exit(1)
        for line in lines:
            self.stdout.write(line)


def _write_down(request: Request, lines: list[str]) -> None:
    """Into the audit log, what changed something; who: the account of the machine that ran the command."""
    does = _WRITES.get(request["verb"])
    if does is None or not does.changes(request):
        return
    target = request.get("name") or request.get("address") or ""
    told = {name: request.get(name) for name in ("role", "scope", "days")}
    told |= {"said": None if does.is_secret else "; ".join(lines)}
    append([Change(who=getpass.getuser(), way=Way.COMMAND, address="", action=does.action, target=target,
                   details={key: value for key, value in told.items() if value})])  # fmt: skip


def _list(request: Request) -> Iterable[str]:
    users = list(User.objects.order_by("username"))
    sessions = Counter(item.username for item in user_accounts.open_sessions())
    living = ApiToken.objects.filter(revoked_at=None, expires_at__gt=timezone.now())
    tokens = Counter(living.values_list("user__username", flat=True))
    locks = lockout.locks()
    issuers = dict(Identity.objects.values_list("user_id", "issuer"))
    rows: list[dict[str, Any]] = [
        {
            "name": user.username,
            "role": user.role,
            "prefixes": list(user.prefixes),
            "active": user.is_active,
            "issuer": issuers.get(user.pk),
            "last_login": _time(user.last_login),
            "sessions": sessions[user.username],
            "tokens": tokens[user.username],
            "locked_for": sorted(lock.source for lock in locks if lock.account == account_key(user.username)),
        }
        for user in users
    ]
    if request["json"]:
        return [json.dumps(rows, indent=2)]
    shown = [
        [*row.values()]
        for row in (row | {key: ", ".join(row[key]) or None for key in ("prefixes", "locked_for")} for row in rows)
    ]
    return table(
        ["name", "role", "only names", "active", "signs in with", "last log-in", "sessions", "tokens", "locked for"],
        shown,
    )


def _add(request: Request) -> Iterable[str]:
    user = user_accounts.new_user(request["name"], user_accounts.as_role(request["role"]))
    user_accounts.add_user(user, _ask_password(user, from_stdin=request["password_stdin"]))
    return [f"{user.username} may log in now, as {Role(user.role).label.lower()}"]


def _roles(request: Request) -> Iterable[str]:
    if request["name"] is None:
        rows = {role.value: sorted(ROLE_PERMISSIONS[role]) for role in Role}
        if request["json"]:
            return [json.dumps(rows, indent=2)]
        return table(["role", "may"], ([role, ", ".join(permissions)] for role, permissions in rows.items()))
    if request["role"] is None:
        raise UserProblem(
            f"which role? gantry users roles {request['name']} ROLE, with one of {', '.join(Role.values)}"
        )
    user, role = user_accounts.find_user(request["name"]), user_accounts.as_role(request["role"])
    user_accounts.set_role(user, role)
    return [f"{user.username} is {role.label.lower()} now"]


def _limit(request: Request) -> Iterable[str]:
    user, prefixes = user_accounts.find_user(request["name"]), user_accounts.as_prefixes(" ".join(request["prefixes"]))
    if not prefixes and not request["all"]:
        shown = ", ".join(user.prefixes)
        return [f"{user.username} sees names that begin with {shown}" if shown else f"{user.username} sees everything"]
    user_accounts.set_prefixes(user, prefixes)
    return [f"{user.username} sees names that begin with {', '.join(prefixes)}" if prefixes else
            f"{user.username} sees every topic and group"]  # fmt: skip


def _reset_password(request: Request) -> Iterable[str]:
    user = user_accounts.find_user(request["name"])
    password = _ask_password(user, from_stdin=request["password_stdin"])
    ended, revoked = user_accounts.reset_password(user, password, revoke_tokens=request["revoke_tokens"])
    return [f"{user.username} has a new password; sessions ended: {ended}; API tokens revoked: {revoked}"]


def _unlock(request: Request) -> Iterable[str]:
    if request["name"] is not None:
        user_accounts.find_user(request["name"])
    count = lockout.forget(account=request["name"] or "", address=request["address"] or "")
    return [f"wrong attempts forgotten: {count}"]


def _sessions(request: Request) -> Iterable[str]:
    user = user_accounts.find_user(request["name"]) if request["name"] else None
    sessions = user_accounts.open_sessions(user)
    if request["end"] or request["end_all"]:
        return [f"sessions ended: {user_accounts.end_sessions(_chosen(sessions, request['end']))}"]
    rows = [
        [item.id, item.username, item.address, _time(item.started_at), _time(item.seen_at), _time(item.ends_at)]
        for item in sessions
    ]
    columns = ["id", "name", "address", "since", "last seen", "ends"]
    if request["json"]:
        keys = [column.replace(" ", "_") for column in columns]
        return [json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2)]
    return table(columns, rows)


def _chosen(sessions: list[OpenSession], ids: list[str] | None) -> list[OpenSession]:
    """Those with these ids; all of them when none is named."""
    if ids is None:
        return sessions
    missing = set(ids) - {item.id for item in sessions}
    if missing:
        raise UserProblem(f"there is no session {', '.join(sorted(missing))}; nothing was ended")
    return [item for item in sessions if item.id in ids]


def _token(request: Request) -> Iterable[str]:
    user = user_accounts.find_user(request["name"])
    if request["scope"] not in ApiToken.Scope.values:
        raise UserProblem(f"there is no scope {request['scope']!r}; known: {', '.join(ApiToken.Scope.values)}")
    if not 0 < len(request["label"]) <= TOKEN_NAME_MAX:
        raise UserProblem(f"--as takes 1 to {TOKEN_NAME_MAX} characters")
    if not user.is_active:
        raise UserProblem(f"{user.username} is closed: a token of it would open nothing")
    try:
        _, secret = async_to_sync(create_token)(user, request["label"], request["scope"], request["days"])
    except TooManyTokens as exc:
        raise UserProblem(str(exc)) from exc
    return [secret]


VERBS: dict[str, Callable[[Request], Iterable[str]]] = {
    "list": _list,
    "add": _add,
    "roles": _roles,
    "limit": _limit,
    "reset-password": _reset_password,
    "unlock": _unlock,
    "sessions": _sessions,
    "token": _token,
}


class _Write(NamedTuple):
    """A verb that changes something: how the audit log calls it, and when it does. is_secret: what it says."""

    action: str
    changes: Callable[[Request], bool] = lambda request: True
    is_secret: bool = False


_WRITES = {
    "add": _Write("user added"),
    "roles": _Write("role changed", lambda request: request["role"] is not None),
    "limit": _Write("names limited", lambda request: bool(request["prefixes"] or request["all"])),
    "reset-password": _Write("password reset"),
    "unlock": _Write("wrong attempts forgotten"),
    "token": _Write("token created", is_secret=True),
    "sessions": _Write("sessions ended", lambda request: bool(request["end"] or request["end_all"])),
}


def _ask_password(user: User, *, from_stdin: bool) -> str:
    """The first line of standard input, or what is typed twice without being shown."""
    if from_stdin:
        password = sys.stdin.readline(PASSWORD_CHARS_MAX + 2).rstrip("\r\n")
    elif sys.stdin.isatty():
        password = getpass.getpass(f"New password of {user.username}: ")
        if getpass.getpass("Once more: ") != password:
            raise UserProblem("the two passwords differ; nothing was changed")
    else:
        raise UserProblem("no terminal to ask on: give the password to standard input, with --password-stdin")
    if len(password) > PASSWORD_CHARS_MAX:
        raise UserProblem(f"a password has at most {PASSWORD_CHARS_MAX} characters")
    return password


def _check_version() -> None:
    """The database must be this version's: the appliance brings it up to date when it starts."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise UserProblem("the database is of an older version: start the appliance of this version once")


def _time(at: datetime | None) -> str | None:
    return at.astimezone().strftime("%Y-%m-%d %H:%M") if at else None
