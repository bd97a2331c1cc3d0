"""Prefixes: how they are read, and what they let an account see."""

from __future__ import annotations

import pytest

from dashboard.limits.names import NO_LIMIT, PREFIXES_MAX, BadPrefix, NameLimit, current, read_prefixes, unlimited, use


@pytest.mark.parametrize(
    ("text", "found"),
    [("", ()), (" ,\n", ()), ("orders-", ("orders-",)), ("orders-, billing-\n orders-", ("billing-", "orders-"))],
)
def test_prefixes_are_separated_by_anything(text: str, found: tuple[str, ...]) -> None:
    assert read_prefixes(text) == found


@pytest.mark.parametrize("text", ["%RETRY%a", "a*", "x" * 128, "ü", " ".join(f"p{i}" for i in range(PREFIXES_MAX + 1))])
def test_what_begins_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadPrefix):
        read_prefixes(text)


def test_retries_and_dead_letters_are_their_groups() -> None:
    limit = NameLimit(("orders-", "b"))
    allowed = ["orders-", "orders-eu", "%RETRY%orders-mail", "%DLQ%orders-mail", "billing"]
    refused = [
        "", "order", "Orders-", "%RETRY%", "%RETRY%mail", "%DLQ%mail", "%LMQ%orders-", "rmq_sys_orders-", "x orders-",
    ]  # fmt: skip
    assert [name for name in allowed + refused if limit.allows(name)] == allowed
    assert all(map(NO_LIMIT.allows, allowed + refused))


def test_a_limit_is_lifted_for_one_question_only() -> None:
    limit = NameLimit(("orders-",))
    use(limit)
    try:
        with pytest.raises(ZeroDivisionError), unlimited():
            assert current() == NO_LIMIT
            raise ZeroDivisionError
        assert current() == limit
    finally:
        use(NO_LIMIT)
