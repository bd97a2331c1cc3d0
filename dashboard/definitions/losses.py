"""What a change of a broker account takes away, and from whom: rights that it has and would not have, and the connected
clients that sign with it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dashboard.clients.values import ConnectedClient
from dashboard.language.sentences import gettext

Scope = Literal["administration", "topic", "group", "address"]
ALL = frozenset({"PUB", "SUB"})
OTHERS = ""  # the topics or groups that the account does not name
_TABLES: tuple[tuple[Scope, str, str], ...] = (
    ("topic", "topic_perms", "default_topic_perm"),
    ("group", "group_perms", "default_group_perm"),
)


@dataclass(frozen=True, slots=True)
class RightLost:
    """name: of the topic or group, "" for those that the account does not name; of an address the address. perm: PUB,
    SUB or PUB|SUB of topics and groups, else "".
    """

    scope: Scope
    name: str = OTHERS
    perm: str = ""

    @property
    def told(self) -> str:
        values = {"name": self.name, "perm": self.perm}
        if self.scope == "administration":
            return gettext("administration of the brokers")
        if self.scope == "address":
            return gettext("requests without a signature from %(name)s") % values
        named, others = gettext("%(perm)s of group %(name)s"), gettext("%(perm)s of other groups")
        if self.scope == "topic":
            named, others = gettext("%(perm)s of topic %(name)s"), gettext("%(perm)s of other topics")
        return (named if self.name else others) % values


@dataclass(frozen=True, slots=True)
class Losses:
    """clients: ids of those that sign with the account now; groups: those that they are members of."""

    rights: tuple[RightLost, ...]
    clients: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def losses_of(
    key: str, accounts: Iterable[Mapping[str, Any]], said: Mapping[str, Any] | None, clients: Iterable[ConnectedClient]
) -> Losses | None:
    """accounts: as each broker has it; said: what the document changes, None when the account is deleted."""
    rights = dict.fromkeys(one for account in accounts for one in _rights_lost(account, said))
    if not rights:
        return None
    signing = [client for client in clients if key in client.accounts]
    groups = sorted({group for client in signing for group in client.consumer_groups})
    return Losses(tuple(rights), tuple(client.name for client in signing), tuple(groups))


def _rights_lost(account: Mapping[str, Any], said: Mapping[str, Any] | None) -> Iterator[RightLost]:
    after: Mapping[str, Any] = {} if said is None else {**account, **said}
    if account.get("admin") and not after.get("admin"):
        yield RightLost("administration")
    for scope, table, default in _TABLES:
        named = account.get(table, {}).keys() | after.get(table, {}).keys()
        for name in (*sorted(named), OTHERS):
            lost = _rights(account, table, default, name) - _rights(after, table, default, name)
            if lost:
                yield RightLost(scope, name, "|".join(sorted(lost)))
    address = account.get("white_remote_address", "")
    if address and address != after.get("white_remote_address", ""):
        yield RightLost("address", address)


def _rights(account: Mapping[str, Any], table: str, default: str, name: str) -> frozenset[str]:
    """An administrator may do all; a name that is in the table has what stands there, another one the default."""
    if account.get("admin"):
        return ALL
    perm = account.get(table, {}).get(name, account.get(default, "DENY"))
    return ALL if perm == "ANY" else frozenset(perm.split("|")) & ALL
