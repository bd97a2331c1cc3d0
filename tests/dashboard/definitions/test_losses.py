"""What a changed account loses, and who is connected with it. What differs, as people read it: no brackets, no
quotes, a line for each entry of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dashboard.clients.values import ConnectedClient, Connection
from dashboard.definitions.losses import RightLost, losses_of
from dashboard.definitions.plan import differences

BOTH: dict[str, Any] = {"topic_perms": {"orders": "PUB|SUB"}, "group_perms": {"readers": "SUB"}}
OPEN: dict[str, Any] = {"default_topic_perm": "PUB|SUB"}


def connected(name: str, account: str | None, *groups: str) -> ConnectedClient:
    return ConnectedClient(name, "PYTHON", 401, (), groups, (Connection("broker-a", "10.0.0.7:1", account=account),))


@pytest.mark.parametrize(
    ("account", "said", "lost"),
    [
        (BOTH, {"topic_perms": {"orders": "SUB"}}, [RightLost("topic", "orders", "PUB")]),
        (BOTH, {"topic_perms": {}}, [RightLost("topic", "orders", "PUB|SUB")]),
        (BOTH, {"group_perms": {"readers": "DENY"}}, [RightLost("group", "readers", "SUB")]),
        (BOTH, {"topic_perms": {}, "default_topic_perm": "PUB|SUB"}, []),
        (BOTH, {"topic_perms": {"orders": "PUB|SUB", "mail": "SUB"}}, []),
        (OPEN, {"topic_perms": {"orders": "DENY"}}, [RightLost("topic", "orders", "PUB|SUB")]),
        (OPEN, {"default_topic_perm": "SUB"}, [RightLost("topic", "", "PUB")]),
        (
            {"admin": True, **BOTH}, {"admin": False},
            [RightLost("administration"), RightLost("topic", "", "PUB|SUB"), RightLost("group", "readers", "PUB"),
             RightLost("group", "", "PUB|SUB")],
        ),
        ({"admin": True}, {"topic_perms": {"orders": "DENY"}}, []),
        ({"white_remote_address": "10.0.0.*"}, {"white_remote_address": ""}, [RightLost("address", "10.0.0.*")]),
        (BOTH, None, [RightLost("topic", "orders", "PUB|SUB"), RightLost("group", "readers", "SUB")]),
    ],
)  # fmt: skip
def test_a_right_that_an_account_has_and_would_not_have_is_lost(
    account: dict[str, Any], said: dict[str, Any] | None, lost: list[RightLost]
) -> None:
    losses = losses_of("shop-app", [account], said, ())
    assert list(losses.rights if losses else ()) == lost


def test_it_is_lost_by_the_clients_that_sign_with_the_account() -> None:
    clients = [connected("a", "shop-app", "readers"), connected("b", "other-app", "others"), connected("c", None)]
    losses = losses_of("shop-app", [BOTH], None, clients)
    assert losses is not None and (losses.clients, losses.groups) == (("a",), ("readers",))


def test_a_right_that_one_of_two_brokers_gives_is_lost_once() -> None:
    losses = losses_of("shop-app", [BOTH, {"topic_perms": {}}, BOTH], {"topic_perms": {"orders": "PUB"}}, ())
    assert losses is not None and losses.rights == (RightLost("topic", "orders", "SUB"),)


def lines(before: Mapping[str, object], after: Mapping[str, object], *, is_new: bool = False) -> list[tuple[str, ...]]:
    return [(one.field, one.entry, one.before, one.after) for one in differences(before, after, is_new=is_new)]


def test_of_a_table_each_entry_that_differs_is_a_line() -> None:
    before = {"topic_perms": {"orders": "PUB|SUB", "mail": "SUB", "same": "PUB"}}
    after = {"topic_perms": {"orders": "SUB", "same": "PUB", "new": "PUB"}}
    assert lines(before, after) == [
        ("topic_perms", "mail", "SUB", "not set"),
        ("topic_perms", "new", "not set", "PUB"),
        ("topic_perms", "orders", "PUB|SUB", "SUB"),
    ]


def test_values_are_written_as_in_the_document() -> None:
    before = {"admin": True, "channels": ["a", "b"], "pattern": "", "write_queues": None}
    after = {"admin": False, "channels": [], "pattern": "x-*", "write_queues": 3}
    assert lines(before, after) == [
        ("admin", "", "true", "false"),
        ("channels", "", "a, b", "not set"),
        ("pattern", "", "not set", "x-*"),
        ("write_queues", "", "differs between brokers", "3"),
    ]


def test_of_what_is_new_there_is_no_before() -> None:
    assert lines({}, {"order": True, "group_perms": {"readers": "SUB"}, "topic_perms": {}}, is_new=True) == [
        ("order", "", "", "true"),
        ("group_perms", "readers", "", "SUB"),
        ("topic_perms", "", "", "not set"),
    ]
