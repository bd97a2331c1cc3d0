"""appliance/broker/sql_filter: what conditions mean, what is refused, and that no text does harm.

That they mean what they mean in RocketMQ is tested beside it: tests/interop/test_sql_oracle.py.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.broker.sql_filter import SqlError, compile_condition
from appliance.broker.sql_filter.parser import CHARS_MAX
from tests.bounded import bounded

ORDER = {"price": "12", "region": "eu", "TAGS": "fresh", "vip": "TRUE"}


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("price BETWEEN 10 AND 20 AND region IN ('eu', 'us')", True),
        ("price > 12", False),
        ("price >= 12.0", True),
        ("Price > 1", False),  # names are case-sensitive
        ("TAGS = 'fresh' AND NOT (region = 'us')", True),
        ("vip = true", True),
        ("missing IS NULL", True),
        ("missing > 1", False),
        ("NOT (missing > 1)", False),  # unknown stays unknown
        ("missing > 1 OR price = 12", True),
        ("region > 1 OR price = 12", False),  # what can't be compared ends the evaluation
        ("price = 12 OR region > 1", True),  # but is not reached here
        ("price = 12 -- a comment to the end", True),
    ],
)
def test_a_condition_is_met_or_not(condition: str, is_met: bool) -> None:
    assert compile_condition(condition).is_met(ORDER) is is_met


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "found end of the condition where a property, a number, a text or '(' should be", 1),
        ("a LIKE 'x%'", "found 'LIKE' where an operator or the end should be", 3),
        ("a = 'it", "a text without its closing quote", 5),
        ("a = ;", "unexpected character ';'", 5),
        ("a = NULL", "NULL can't be compared; use IS NULL or IS NOT NULL", 1),
        ("a BETWEEN 9 AND 1", "Illegal values of between: the left must not be above the right", 1),
        ("a IN (1)", "found '1' where a text in quotes should be", 7),
        ("price AND 5", "a value stands where a condition should be", 11),
        ("a > 'x'", "only numbers can be compared by >", 1),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, reason: str, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        compile_condition(text)
    assert (caught.value.reason, caught.value.position) == (reason, position)
    assert str(caught.value).startswith("Invalid MessageSelector")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "a = 1" + ")" * 5000,
        "NOT " * 5000 + "a",
        "-" * 5000 + "1 > a",
        "a" + " = 1" * 5000,
        "a" + " < 1" * 5000,
        " OR ".join(["a = 1"] * 5000),
        "'" * (CHARS_MAX - 1),
        "/*" * (CHARS_MAX // 2),
        "/" + "*" * (CHARS_MAX - 1),
        "-- " * (CHARS_MAX // 3),
        "1" * CHARS_MAX,
        "1" * (CHARS_MAX // 2) + "e" + "9" * (CHARS_MAX // 3),
        "a" * (CHARS_MAX + 1),
    ],
)
def test_a_monster_is_refused_in_no_time(text: str) -> None:
    started = time.thread_time()  # seconds of work: others on this core don't count
    with pytest.raises(SqlError):
        compile_condition(text)
    assert time.thread_time() - started < 1


def test_s24_the_deepest_condition_that_is_taken_can_be_asked() -> None:
    tallest = "(" * 60 + "a = 1" + " = TRUE" * 60 + ")" * 60
    assert compile_condition(tallest).is_met({"a": "1"})
    widest = " OR ".join(["a = 2"] * 1000 + ["a = 1"])
    assert compile_condition(widest).is_met({"a": "1"})


WORDS = st.sampled_from(
    [
        *["a", "b", "NOT", "AND", "OR", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "(", ")", ",", "+", "-"],
        *["=", "<>", "<", ">", "<=", ">=", "1", "2.5", "9999999999", "'x'", "''", "--", "/*", "*/", "'", "\n", "é"],
    ]
)
PROPERTIES = st.dictionaries(st.sampled_from("ab"), st.text(max_size=8))


@pytest.mark.slow
@bounded(400)
@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=30).map(" ".join)), PROPERTIES)
def test_no_text_raises_anything_but_its_own_error(text: str, properties: dict[str, str]) -> None:
    try:
        condition = compile_condition(text)
    except SqlError as exc:
        assert 1 <= exc.position <= len(text) + 1
    else:
        assert condition.is_met(properties) in (True, False)


@bounded(200)
@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 31), (1 << 31) - 1))
def test_whole_numbers_compare_as_numbers(value: int, bound: int) -> None:
    properties = {"a": str(value)}
    assert compile_condition(f"a > {bound}").is_met(properties) is (value > bound)
    assert compile_condition(f"a = {bound}").is_met(properties) is (value == bound)
    assert compile_condition(f"a NOT BETWEEN {bound} AND 7").is_met(properties) is (value < bound or value > 7)


@bounded(200)
@given(st.text(max_size=20))
def test_texts_are_quoted_by_doubling(text: str) -> None:
    quoted = text.replace("'", "''")
    assert compile_condition(f"a = '{quoted}'").is_met({"a": text})
    assert compile_condition(f"a IN ('nothing', '{quoted}')").is_met({"a": text})
