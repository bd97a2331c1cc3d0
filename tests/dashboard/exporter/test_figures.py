"""The figures at /metrics: names as rocketmq-exporter's, the brokers' values, nothing of the silent; the guard. The
text that Prometheus reads.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import AsyncClient

from dashboard.access.tokens import create_token
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import GroupPlace
from dashboard.exporter.exposition import Family, exposition
from dashboard.exporter.page import MetricsPage, families, page_of
from dashboard.groups.group_cache import group_book
from dashboard.groups.trend import with_rates
from dashboard.live.sampler import Sampler
from dashboard.live.stored_count import StoredCount
from dashboard.models.management import User
from dashboard.status.board import Board, BrokerFacts, BrokerState, Snapshot, WatchedGroup, board
from gantrymq import ConsumeFrom, PopConsumer
from gantrymq.message.model import Message, MessageExt
from tests.dashboard.conftest import Client, Topic
from tests.dashboard.exporter.page_reader import read_page
from tests.harness import ServingCluster
from tests.waiting import until

MOST_USED = {  # of rocketmq-exporter; brokeruntime_… stands for rocketmq_brokeruntime_…
    *("broker_tps", "broker_qps", "producer_tps", "producer_offset", "topic_retry_offset", "topic_dlq_offset"),
    *("consumer_tps", "consumer_offset", "group_diff", "group_retrydiff", "group_dlqdiff", "group_count"),
    *("group_get_latency_by_storetime", "message_accumulation", "brokeruntime_msg_put_total_today_now"),
    *("brokeruntime_msg_gettotal_today_now", "brokeruntime_dispatch_behind_bytes", "brokeruntime_put_tps10"),
    *("brokeruntime_put_message_average_size", "brokeruntime_putmessage_times_total", "brokeruntime_gettotal_tps10"),
    *("brokeruntime_commitlog_disk_ratio", "brokeruntime_consumequeue_disk_ratio", "brokeruntime_put_latency_99"),
    *("brokeruntime_send_threadpool_queue_size", "brokeruntime_send_threadpoolqueue_headwait_timemills"),
    *("brokeruntime_pull_threadpoolqueue_size", "brokeruntime_earliest_message_timestamp"),
    *("brokeruntime_commitlogdir_capacity_total", "brokeruntime_commitlogdir_capacity_free"),
    *("brokeruntime_commitlog_maxoffset", "brokeruntime_commitlog_minoffset"),
}


def facts(**told: str) -> BrokerFacts:
    return BrokerFacts("broker-a", "10.0.0.1:10911", 100.0, "C", told, in_rate=5.0, out_rate=0.0)


def snapshot(*brokers: BrokerState) -> Snapshot:
    return Snapshot(100.0, "127.0.0.1:9876", None, brokers, (), None)


def test_a_table_of_request_28_is_read_as_the_exporter_reads_it() -> None:
    told = {
        "putTps": "1.5 2.5 3.5",
        "commitLogDirCapacity": "Total : 2.0 GiB, Free : 512.0 MiB.",
        "putMessageEntireTimeMax": "lots",
    }
    page = read_page(page_of(snapshot(BrokerState("broker-a", "10.0.0.1:10911", facts(**told)))))
    [(labels, value)] = page["rocketmq_brokeruntime_put_tps60"]
    assert (labels["cluster"], labels["brokerIP"], labels["brokerHost"], value) == (
        "C", "10.0.0.1:10911", "broker-a", 2.5,
    )  # fmt: skip
    sizes = [page[f"rocketmq_brokeruntime_commitlogdir_capacity_{name}"][0][1] for name in ("total", "free")]
    assert sizes == [2 << 30, 512 << 20]
    assert "rocketmq_brokeruntime_putmessage_entire_time_max" not in page  # it did not say a number
    assert page["rocketmq_broker_qps"][0][1] == 0.0  # known, and nothing


def test_a_silent_broker_has_no_figures_but_that_it_is_silent() -> None:
    silent = BrokerState("broker-a", "10.0.0.1:10911", facts(putTps="1 2 3"), "no answer", 99.0)
    page = read_page(page_of(snapshot(silent)))
    assert page["gantry_broker_up"] == [({"broker": "broker-a", "brokerIP": "10.0.0.1:10911", "role": "master"}, 0.0)]
    assert not [name for name in page if name.startswith("rocketmq_")]


def test_what_a_group_consumes_a_second_is_known_at_the_second_look() -> None:
    place = GroupPlace("orders", "broker-a", 100, 5, 10)
    before = WatchedGroup("g", 5, 10, 1, 100.0, places=(place,))
    [later] = with_rates([replace(place, consumer_offset=150)], before, 110.0)
    assert later.consume_rate == 5.0
    for offset, seen in ((150, None), (50, before)):  # never seen, and a place that was moved back
        [first] = with_rates([replace(place, consumer_offset=offset)], seen, 110.0)
        assert first.consume_rate is None


async def test_figures_of_a_real_cluster_stand_under_the_exporters_names(
    gateway: Gateway, make_topic: Topic, transactional_db: None
) -> None:
    await make_topic("metered", queues=2, messages=[Message("metered", b"x") for _ in range(3)])
    counted = await snapshot_with("metered", gateway)
    page, known = read_page(page_of(counted)), {family.name for family in families(counted)}
    assert {f"rocketmq_{name}" for name in MOST_USED} <= known
    [(labels, value)] = [one for one in page["rocketmq_producer_offset"] if one[0]["topic"] == "metered"]
    assert (labels["broker"], value) == ("broker-a", 3.0)
    assert page["rocketmq_brokeruntime_commitlog_maxoffset"][0][1] > 0
    assert page["gantry_samples_left_out"] == [({}, 0.0)]


async def test_a_group_that_pops_has_its_leases_and_redeliveries(
    gateway: Gateway, cluster: ServingCluster, make_topic: Topic, transactional_db: None
) -> None:
    await make_topic("leased", queues=1, messages=[Message("leased", b"x") for _ in range(3)])
    consumer = PopConsumer(
        cluster.namesrv_address, group="lessees", consume_from=ConsumeFrom.FIRST_OFFSET, batch_size=3
    )
    consumer.subscribe("leased")
    async with consumer:
        messages: list[MessageExt] = []
        while len(messages) < 3:
            messages += await consumer.poll()
        await consumer.change_invisible_time(messages[0], 0)
        (again,) = await consumer.poll()
        await consumer.ack(messages[1])
        page: dict[str, list[tuple[dict[str, str], float]]] = {}

        async def is_told() -> bool:  # what was given back counts until the disk has it
            nonlocal page
            group_book.clear()
            await group_book.listing(gateway)
            await group_book.rows(gateway, ["lessees"])
            page = read_page(page_of(await snapshot_with("leased", gateway)))
            told = page.get("gantry_group_in_flight", ())
            in_flight = {labels["topic"]: value for labels, value in told if labels["group"] == "lessees"}
            return in_flight == {"leased": 1.0, "%RETRY%lessees_leased": 1.0}

        await until(is_told)
        ages = {labels["group"]: value for labels, value in page["gantry_group_oldest_lease_seconds"]}
        assert ages["lessees"] > 0
        assert page["gantry_group_redelivered_total"] == [({"broker": "broker-a", "group": "lessees"}, 1.0)]
        assert page["gantry_pop_redelivered_total"] == [({"broker": "broker-a"}, 1.0)]
        await consumer.ack(again, messages[2])


async def test_readers_of_one_second_share_one_writing() -> None:
    page, one = MetricsPage(), snapshot()
    assert await page.text(one) is await page.text(one)
    assert await page.text(snapshot()) is not await page.text(one)


@pytest.mark.parametrize("scope", ["metrics", "read"])
async def test_s11_a_token_opens_the_page_and_one_for_metrics_opens_nothing_else(
    scope: str, users: dict[str, User], gateway: Gateway
) -> None:
    _, secret = await create_token(users["reader"], "prometheus", scope, 7)
    client, headers = AsyncClient(), {"authorization": f"Bearer {secret}"}
    assert (await client.get("/metrics", headers=headers)).status_code == 503  # nothing was looked at yet
    board.put(snapshot())
    answer = await client.get("/metrics", headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"][:25]) == (200, "text/plain; version=0.0.4")
    assert (await client.post("/metrics", headers=headers)).status_code == 405
    cluster = await client.get("/api/v1/cluster", headers=headers)
    assert cluster.status_code == (403 if scope == "metrics" else 200)


async def test_without_a_token_the_page_is_closed(log_in: Client) -> None:
    board.put(snapshot())
    for headers in ({}, {"authorization": "Bearer gmq_" + "x" * 43}):
        assert (await AsyncClient().get("/metrics", headers=headers)).status_code == 401
    assert (await (await log_in("reader")).get("/metrics")).status_code == 200


async def snapshot_with(topic: str, gateway: Gateway) -> Snapshot:
    """What the sampler knows once it has the topic."""
    count = StoredCount(gateway, lambda: frozenset({"broker-a"}))

    async def is_counted() -> bool:
        await count.look()
        return topic in count.topics()

    await until(is_counted)
    sampler = Sampler(gateway, keep=Board())
    taken: list[Snapshot] = []

    async def has_answered() -> bool:  # a busy machine may need more than one round
        taken.append(await sampler.sample())
        return bool(taken[-1].brokers) and all(broker.is_answering for broker in taken[-1].brokers)

    await until(has_answered)
    return replace(taken[-1], topics=count.topics())


def test_what_stands_in_a_label_cannot_end_it() -> None:
    family = Family("gantry_group_lag_seconds", "Lag")
    family.add(1.5, group='a"} 9\nfake{x="\\')
    lines = exposition([family]).splitlines()
    assert lines[2] == r'gantry_group_lag_seconds{group="a\"} 9\nfake{x=\"\\"} 1.5'
    assert len(lines) == 6


def test_what_is_not_known_has_no_sample_and_zero_has_one() -> None:
    family = Family("gantry_x", "X")
    for value in (None, float("nan"), float("inf"), 0, 1e15):
        family.add(value)
    assert exposition([family]).splitlines()[2:4] == ["gantry_x 0", "gantry_x 1000000000000000"]


def test_a_page_has_an_end_and_says_what_it_left_out() -> None:
    families = [Family("a", "A"), Family("b", "B")]
    for family in families:
        for number in range(5):
            family.add(number, n=str(number))
    lines = exposition(families, samples_max=7).splitlines()
    assert len([line for line in lines if line[:2] in ("a{", "b{")]) == 7
    assert lines[-1] == "gantry_samples_left_out 3"
