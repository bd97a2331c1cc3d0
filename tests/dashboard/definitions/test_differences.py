"""What differs, as people read it: no brackets, no quotes, a line for each entry of a table."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.definitions.plan import differences


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
