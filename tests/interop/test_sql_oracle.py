"""SQL92 conditions: what RocketMQ's own filter module makes of them, and what we make of them.

A table of conditions times a table of properties, and random conditions from the grammar, evaluated by both.
"""

from __future__ import annotations

import base64
import random
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from appliance.bench.apache_peer import SERVERS
from appliance.bench.maven import ToolError, class_path, copied_jars
from appliance.broker.sql_filter import EvaluationError, SqlError, compile_condition
from gantrymq.message.properties import encode_properties
from tests.conftest import missing, require_tool

SOURCE = Path(__file__).parent / "sql" / "SqlOracle.java"
Case = tuple[str, Mapping[str, str]]

OPERANDS = (
    "a", "b", "5", "-5", "2147483647", "2147483648", "5l", "1.5", "-1.5", "5.", ".5", "1e2", "'5'", "'x'", "''",
    "TRUE", "FALSE", "NULL", "-a", "-'x'", "-NULL", "- -5", "+5", "(a)", "(a = 5)", "(a IS NULL)", "NOT a",
    "-(a = 5)",
)  # fmt: skip
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
PROPERTIES: tuple[Mapping[str, str], ...] = (
    {},
    {"a": "5"},
    {"a": "5", "b": "5"},
    {"a": "+5", "b": "05"},
    {"a": "5.0", "b": "5"},
    {"a": "x", "b": "5"},
    {"a": "true", "b": "TRUE"},
    {"a": "-1", "b": "NaN"},
    {"a": "NaN", "b": "NaN"},
    {"a": "2147483648", "b": "0x1p3"},
    {"a": "9223372036854775808", "b": "-0.0"},
    {"a": " 5", "b": "0.0"},
    {"a": "1_0", "b": "1e400"},
    {"a": "5d", "b": "5f"},
    {"a": "\u0665", "b": "\u0665"},
    {"a": "''", "b": "it's"},
)
WHOLE_CONDITIONS = (
    "a BETWEEN 1 AND 10", "a NOT BETWEEN 1 AND 10", "a between 10 and 1", "a BETWEEN -5 AND -9", "a BETWEEN 1 AND b",
    "a BETWEEN 1.5 AND 2", "a BETWEEN 3 AND 2.5", "5 BETWEEN a AND b", "a BETWEEN 'a' AND 'b'",
    "a BETWEEN NULL AND 5", "a IN ('5')", "a in ('x', '5', 'it''s')", "a NOT IN ('5', 'x')", "a IN (5)", "a IN ()",
    "5 IN ('5')", "(a) IN ('5')", "a IN ('1','2','3','4','5','6')", "a NOT IN ('1','2','3','4','5','6')",
    "+a IN ('5')", "-a IN ('5')", "a IS NULL", "a IS NOT NULL", "NOT a IS NULL", "a IS NULL IS NULL", "NULL IS NULL",
    "a IS 5", "5 IS NULL", "a = 5 AND b = 5", "a = 5 OR b = 5", "a > 3 OR b = '5'", "b = '5' OR a > 3",
    "a > 3 AND b = '5'", "NOT a > 3", "NOT (a > 3)", "NOT a = 5", "NOT NOT a = 5", "a OR b", "a AND b", "NOT a", "a",
    "(a)", "TRUE", "FALSE", "NULL", "NOT NULL", "NOT TRUE", "TRUE OR a > 3", "a > 3 OR TRUE", "FALSE AND a > 3",
    "a > 3 AND FALSE", "NULL AND FALSE", "NULL OR TRUE", "a = 1 = 1", "a = 5 = TRUE", "a = 5 <> FALSE", "1 < 2 < 3",
    "a < 5 = TRUE", "a <> 5 OR b <> 5", "", " ", "a =", "= a", "a = = 5", "(a = 5", "a = 5 OR", "AND a", "a 'x'", "5",
    "'x'", "-5", "a = 'x", "a = \"x\"", "a = 5l", "a = 05", "a = 0", "a = 00.5", "a > 0.0", "a > 0e0", "a > 1e400",
    "a > 1e-400", "a = 9223372036854775807", "a = 9223372036854775808", "a = -9223372036854775808",
    "a = -9223372036854775807", "a = 0L", "a = 5L", "a = 5.5.5", "a=5--c\n", "a=5 -- c\n AND b=5",
    "/* x */ a = 5 /* y * / ** */", "a = 5 /* x", "a\t=\f5\r\n", "a = 5 # x", "$a = 5", "_a = '5'", "a$ = 5",
    "a.b = 5", "é = 5", "a = 'é'", "a not between 1 and 10 and b = '5'", "iN = 5", "Not = 5", "a is not 5",
    "a = +-+-5", "a = -+5", "a = 'it''s'", "b = 'it''s'", "a = ''''''", "a > '5'", "'5' > a", "TRUE = a", "a = TRUE",
    "TRUE = TRUE", "TRUE = FALSE", "TRUE = 5", "5 = TRUE", "'x' = TRUE", "TRUE = 'x'", "5 = 5.0", "5 = 5l", "5 = '5'",
    "'5' = 5", "'x' = 5", "5.5 > 5", "5 > 5.5", "3000000000 > 5", "5 = a", "5 <> a", "a <> a", "a = a", "a = b",
    "a > b", "now > 5", "(a = 5) = (b = 5)", "a = (b = 5)", "(b = 5) = a", "(a = 5) = 'true'", "(a = 5) > 3",
    "NOT (a = 5 AND NOT (b = 5 OR a IN ('x'))) OR b IS NULL",
)  # fmt: skip
# RocketMQ takes what comes before, and ignores the rest; that is an error here
IGNORED_THERE = ("a = 5 )", "a LIKE 'x'", "a = 5 5", "a IS NULL b", "a 'x'", "a = 5.5.5", "a = 0L", "a = 05", "a = 00")


def ours(condition: str, properties: Mapping[str, str]) -> str:
    try:
        compiled = compile_condition(condition)
    except SqlError:
        return "C"
    try:
        value = compiled._evaluate(properties)
    except EvaluationError:
        return "E"
    return "N" if value is None else "T" if value is True else "F" if value is False else "V"


@pytest.fixture(scope="module")
def oracle_command() -> list[str]:
    require_tool("java", "it evaluates conditions as RocketMQ does")
    require_tool("mvn", "it fetches RocketMQ's filter module")
    try:
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", class_path(copied_jars(SERVERS)), str(SOURCE)]
    except ToolError as exc:
        missing("the jars of Apache RocketMQ", str(exc))
        raise


def theirs(command: list[str], cases: Iterable[Case]) -> list[str]:
    lines = [f"{_encoded(condition)}\t{_encoded(encode_properties(properties))}\n" for condition, properties in cases]
    done = subprocess.run(command, input="".join(lines), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def differences(command: list[str], cases: list[Case]) -> list[tuple[str, Mapping[str, str], str, str]]:
    answers = theirs(command, cases)
    assert len(answers) == len(cases)
    compared = [(*case, answer, ours(*case)) for case, answer in zip(cases, answers, strict=True)]
    return [found for found in compared if found[2] != found[3]]


def test_every_operand_compares_with_every_other_as_in_rocketmq(oracle_command: list[str]) -> None:
    conditions = [f"{left} {operator} {right}" for left in OPERANDS for operator in OPERATORS for right in OPERANDS]
    cases = [(condition, properties) for condition in conditions for properties in PROPERTIES]
    assert differences(oracle_command, cases) == []


def test_whole_conditions_mean_what_they_mean_in_rocketmq(oracle_command: list[str]) -> None:
    conditions = [condition for condition in WHOLE_CONDITIONS if condition not in IGNORED_THERE]
    cases = [(condition, properties) for condition in conditions for properties in PROPERTIES]
    assert differences(oracle_command, cases) == []


def test_what_follows_a_condition_is_ignored_by_rocketmq_and_refused_here(oracle_command: list[str]) -> None:
    cases: list[Case] = [(condition, {}) for condition in IGNORED_THERE]
    assert "C" not in theirs(oracle_command, cases)
    assert {ours(*case) for case in cases} == {"C"}


def test_random_conditions_mean_the_same(oracle_command: list[str]) -> None:
    dice = random.Random(49)
    cases = [(_random_condition(dice, 4), dice.choice(PROPERTIES)) for _ in range(20_000)]
    assert differences(oracle_command, cases) == []


def _random_condition(dice: random.Random, depth: int) -> str:
    """A text along the grammar, right in form more often than not; its parts may not fit together."""
    if not depth or dice.random() < 0.25:
        return _random_comparison(dice)
    kind = dice.randrange(6)
    left = _random_condition(dice, depth - 1)
    if kind == 0:
        return f"NOT ({left})"
    if kind == 1:
        return f"({left})"
    word = dice.choice(("AND", "OR", "and", "Or", "=", "<>"))
    return f"{left} {word} {_random_condition(dice, depth - 1)}"


def _random_comparison(dice: random.Random) -> str:
    left = dice.choice(("a", "b")) if dice.random() < 0.8 else dice.choice(OPERANDS)
    kind = dice.randrange(5)
    if kind == 0:
        return f"{left} {dice.choice(('IN', 'NOT IN'))} ('5', 'x')"
    if kind == 1:
        return f"{left} {dice.choice(('IS NULL', 'IS NOT NULL'))}"
    if kind == 2:
        return f"{left} {dice.choice(('BETWEEN', 'NOT BETWEEN'))} {dice.choice(OPERANDS)} AND {dice.choice(OPERANDS)}"
    return f"{left} {dice.choice(OPERATORS)} {dice.choice(OPERANDS)}"
