"""Letters by cause, and the condition that finds those of one."""

from __future__ import annotations

from dashboard.cluster.message_query import understand
from dashboard.dead_letters.letters import grouped
from gantrymq.message.model import MessageExt

HOST = ("127.0.0.1", 1)


def letter(stored: int, **properties: str) -> MessageExt:
    return MessageExt("%DLQ%g", b"", 0, properties, 0, stored, 0, 0, 0, 0, HOST, stored, HOST, 0, 0, 0, "broker-a")


def test_letters_are_grouped_by_what_failed_the_most_frequent_first() -> None:
    told = {"CONSUME_ERROR": "shop.OutOfStock at orders.py:42"}
    letters = [
        letter(5, **told, CONSUME_ERROR_TEXT="OutOfStock: none of 17 left"),
        letter(9, **told, CONSUME_ERROR_TEXT="OutOfStock: none of 4 left"),
        letter(7),
    ]
    first, second = grouped(letters)
    assert (first.error, first.text, first.count) == (told["CONSUME_ERROR"], "OutOfStock: none of 4 left", 2)
    assert (first.first_ms, first.last_ms, first.place) == (5, 9, "broker-a.0.9")
    assert (second.error, second.count) == ("", 1)
    for cause, expected in ((first, [5, 9]), (second, [7])):
        found = [item.store_timestamp for item in letters if understand(cause.condition).matches(item)]
        assert found == expected, cause.condition
    assert grouped([]) == []
