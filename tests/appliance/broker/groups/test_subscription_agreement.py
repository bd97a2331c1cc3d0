"""Members of one group that subscribe differently: found, told once in a while, and forgotten when they agree."""

from __future__ import annotations

import logging

import pytest

from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.subscription_agreement import REMARK_CHARS_MAX, TELL_INTERVAL_S, fingerprint_of, parties_of
from gantrymq.remoting.bodies import ConsumerData, SubscriptionData
from tests.appliance.broker.members import join, member
from tests.waiting import Clock


def wanting(model: str = "CLUSTERING", **topics: str) -> ConsumerData:
    wanted = [SubscriptionData(topic, expression) for topic, expression in topics.items()]
    return ConsumerData("g", message_model=model, subscription_data_set=[*wanted, SubscriptionData("%RETRY%g")])


@pytest.mark.parametrize(
    ("one", "other"), [("A || B", "B||A"), ("*", ""), (" A ", "A"), ("A||A", "A"), ("A || B || ", "B || A")]
)
def test_expressions_that_mean_the_same_agree(consumers: ConsumerManager, one: str, other: str) -> None:
    join(consumers, member(1), "c1", wanting(t=one))
    join(consumers, member(2), "c2", wanting(t=other))
    assert consumers.agreement.disagreeing_groups == []


@pytest.mark.parametrize(
    "other", [wanting(t="B"), wanting(u="A"), wanting(t="A", u="A"), wanting(), wanting("BROADCASTING", t="A")]
)
def test_other_topics_expressions_or_models_disagree_until_they_agree_again(
    consumers: ConsumerManager, other: ConsumerData
) -> None:
    one, two = member(1), member(2)
    join(consumers, one, "c1", wanting(t="A"))
    join(consumers, two, "c2", other)
    assert consumers.agreement.disagreeing_groups == ["g"]
    remark = consumers.agreement.remark("g") or ""
    assert "c1 wants t: A" in remark
    assert "c2 wants" in remark
    parties = parties_of(consumers.groups["g"])
    assert sorted(party.client_ids for party in parties) == [["c1"], ["c2"]]
    join(consumers, two, "c2", wanting(t="A"))
    assert consumers.agreement.remark("g") is None
    join(consumers, two, "c2", other)
    consumers.unregister("g", two)
    assert consumers.agreement.disagreeing_groups == []


def test_an_sql_condition_is_no_tag_of_the_same_text() -> None:
    tag, sql = SubscriptionData("t", "a"), SubscriptionData("t", "a", expression_type="SQL92")
    assert fingerprint_of("g", "CLUSTERING", [tag]) != fingerprint_of("g", "CLUSTERING", [sql])


def test_java_members_and_the_log_are_told_once_in_ten_minutes(
    consumers: ConsumerManager, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    one, two = member(1), member(2)
    for _ in range(5):
        join(consumers, one, "c1", wanting(t="A"))
        join(consumers, two, "c2", wanting(t="B"))
        clock.now += 30
    texts = [text for text in one.notices() if "subscribe differently" in text]
    assert len(texts) == 1
    assert texts[0].startswith("g (")
    assert [text for text in two.notices() if "subscribe differently" in text] == texts
    assert len([record for record in caplog.records if record.event == "subscriptions_disagree"]) == 1  # type: ignore[attr-defined]
    clock.now += TELL_INTERVAL_S
    join(consumers, one, "c1", wanting(t="A"))
    assert len([text for text in one.notices() if "subscribe differently" in text]) == 2


def test_a_new_quarrel_within_the_ten_minutes_has_a_new_remark(consumers: ConsumerManager) -> None:
    one, two = member(1), member(2)
    join(consumers, one, "c1", wanting(t="A"))
    join(consumers, two, "c2", wanting(t="B"))
    join(consumers, two, "c2", wanting(t="C"))
    assert "c2 wants t: C" in (consumers.agreement.remark("g") or "")


def test_what_is_too_long_to_keep_still_counts(consumers: ConsumerManager) -> None:
    long, many = "A || " * 50_000 + "B", {f"t{number}": "*" for number in range(1000)}
    for group, first, second in (
        ("long", wanting(t=f"{'a' * 500} || x"), wanting(t=f"{'a' * 500} || y")),
        ("many", wanting(**many), wanting(**many, t5000="*")),
    ):
        first.group_name = second.group_name = group
        join(consumers, member(1), "c1", first)
        assert consumers.agreement.remark(group) is None
        join(consumers, member(2), "c2", second)
        assert consumers.agreement.remark(group) is not None
    fingerprint = fingerprint_of("g", "CLUSTERING", [SubscriptionData(f"t{number}", long) for number in range(100)])
    assert len(str(fingerprint)) < 64 * 300


def test_a_thousand_members_who_all_want_something_else_cost_little(consumers: ConsumerManager, clock: Clock) -> None:
    connections = [member(number) for number in range(1000)]
    for round_number in range(3):
        for number, connection in enumerate(connections):
            join(consumers, connection, f"c{number}", wanting(t=f"tag-{round_number}-{number}"))
        clock.now += 30
    join(consumers, connections[0], "c0", wanting(t="last"))
    remark = consumers.agreement.remark("g") or ""
    assert "and 996 more ways" in remark
    for connection in connections[1:]:
        consumers.unregister("g", connection)
    assert consumers.agreement.remark("g") is None
    last = fingerprint_of("g", "CLUSTERING", [SubscriptionData("t", "last")])
    assert dict(consumers.groups["g"].fingerprints) == {last: 1}


def test_remarks_stay_short_whatever_a_client_subscribes_to(consumers: ConsumerManager) -> None:
    for number in range(50):
        join(consumers, member(number), f"c{number}", wanting(**{f"topic{number}": "x" * 500}))
    assert len(consumers.agreement.remark("g") or "") == REMARK_CHARS_MAX
    join(consumers, member(99), "c99", wanting(topic1="x" * 500))
