"""Tags and what they select."""

from __future__ import annotations

import pytest

from gantrymq.client.consume.subscription import is_wanted, parse_subscription
from gantrymq.errors import ConfigError
from tests.gantrymq.client.messages import stored


@pytest.mark.parametrize("expression", ["*", "", "  ", " * ", "||"])
def test_everything_is_said_in_several_ways(expression: str) -> None:
    subscription = parse_subscription("T", expression, 5)
    assert (subscription.sub_string, subscription.tags_set, subscription.code_set) == ("*", [], [])
    assert is_wanted(subscription, stored(1))


def test_tags_get_javas_hash_codes() -> None:
    subscription = parse_subscription("T", "TagA || TagB||TagA", 5)
    assert subscription.tags_set == ["TagA", "TagB"]
    assert subscription.code_set == [2598919, 2598920]
    assert subscription.to_dict()["subVersion"] == 5


def test_a_tag_with_the_same_hash_is_not_taken_for_the_wanted_one() -> None:
    subscription = parse_subscription("T", "Aa", 5)
    assert is_wanted(subscription, stored(1, TAGS="Aa"))
    assert not is_wanted(subscription, stored(1, TAGS="BB"))  # Java's hash code of both is 2112
    assert not is_wanted(subscription, stored(1))


def test_a_condition_is_the_brokers_to_judge() -> None:
    subscription = parse_subscription("T", "*", 5, sql="a > 5 AND TAGS = 'x'")
    assert (subscription.expression_type, subscription.sub_string) == ("SQL92", "a > 5 AND TAGS = 'x'")
    assert is_wanted(subscription, stored(1, TAGS="y"))


@pytest.mark.parametrize(("tags", "sql"), [("TagA", "a > 5"), ("*", " ")])
def test_tags_beside_a_condition_and_an_empty_one_are_refused(tags: str, sql: str) -> None:
    with pytest.raises(ConfigError):
        parse_subscription("T", tags, 5, sql=sql)
