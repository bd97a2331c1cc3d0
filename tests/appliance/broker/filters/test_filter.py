"""appliance/broker/filters/filter.py: subscriptions as sets of Java hash codes."""

from __future__ import annotations

import pytest

from appliance.broker.filters.filter import filter_of, parse_tags
from appliance.errors import BrokerError
from gantrymq.remoting.bodies import SubscriptionData
from store.queues.filter import TagFilter, may_match_code

TAG_A = 2598919  # Java: "TagA".hashCode()


@pytest.mark.parametrize("expression", ["", "*"])
def test_nothing_and_a_star_want_everything(expression: str) -> None:
    assert parse_tags(expression) is None


@pytest.mark.parametrize("expression", ["||", "||||", "|" * 1000])
def test_bars_alone_can_not_be_parsed(expression: str) -> None:
    with pytest.raises(BrokerError, match="parse the consumer's subscription failed: it names no tag") as refused:
        parse_tags(expression)
    assert refused.value.code == 23
    assert filter_of(SubscriptionData("t", expression)) == TagFilter(frozenset()), "in a heartbeat they match nothing"


@pytest.mark.parametrize("expression", ["  ", " || ", "|| ||", "\t"])
def test_blanks_match_nothing(expression: str) -> None:
    wanted = parse_tags(expression)
    assert wanted == TagFilter(frozenset())
    assert not may_match_code(wanted, 0)


@pytest.mark.parametrize("expression", [" * ", "*||", "||*"])
def test_a_star_beside_something_else_is_a_tag_of_that_name(expression: str) -> None:
    assert parse_tags(expression) == TagFilter(frozenset({ord("*")}))


def test_only_what_java_takes_for_blanks_is_taken_off() -> None:
    assert parse_tags("\x01 TagA\x1f") == TagFilter(frozenset({TAG_A}))
    assert parse_tags("TagA\u00a0") != TagFilter(frozenset({TAG_A}))


def test_tags_are_split_and_trimmed() -> None:
    assert parse_tags(" TagA ||TagB|| ") == TagFilter(frozenset({TAG_A, TAG_A + 1}))


def test_a_heartbeat_without_code_set_is_read_from_its_expression() -> None:
    assert filter_of(SubscriptionData("t", "TagA")) == TagFilter(frozenset({TAG_A}))
    assert filter_of(SubscriptionData("t", "TagA", code_set=[7])) == TagFilter(frozenset({7}))
    assert filter_of(SubscriptionData("t", "*", code_set=[7])) is None


def test_a_class_filter_is_the_clients_own_business_and_gets_everything() -> None:
    assert filter_of(SubscriptionData("t", "org.example.Filter", class_filter_mode=True)) is None


def test_a_negative_hash_matches_whether_or_not_it_was_sign_extended() -> None:
    wanted = TagFilter(frozenset({-5}))
    assert may_match_code(wanted, -5)
    assert may_match_code(wanted, 0xFFFFFFFB)
    assert not may_match_code(wanted, 5)
    assert may_match_code(None, 5)
