"""Tables that brokers send whole, with thousands of rows: decoded when they change, and never older than asked."""

from __future__ import annotations

import pytest

from dashboard.cluster.gateway import Gateway
from gantrymq.client.admin.client import AdminClient
from gantrymq.remoting import admin_bodies
from tests.dashboard.conftest import Topic
from tests.harness import ServingCluster


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were decoded, by their class."""
    seen: list[str] = []
    for body in (admin_bodies.TopicConfigSerializeWrapper, admin_bodies.SubscriptionGroupWrapper):
        read = body.from_json

        def counted(data: bytes, *, read=read, name=body.__name__, **options):  # type: ignore[no-untyped-def]
            seen.append(name)
            return read(data, **options)

        monkeypatch.setattr(body, "from_json", counted)
    return seen


async def test_unchanged_topics_are_decoded_once(gateway: Gateway, make_topic: Topic, decoded: list[str]) -> None:
    await make_topic("kept-a")
    await gateway.topics.list()
    decoded.clear()
    before = await gateway.topics.list()
    assert (await gateway.topics.get("kept-a")).name == "kept-a"
    again = await gateway.topics.list()
    assert decoded == []
    assert all(row is same for row, same in zip(before.rows, again.rows, strict=True))


async def test_what_others_changed_is_there_at_once(
    gateway: Gateway, make_topic: Topic, cluster: ServingCluster
) -> None:
    await make_topic("kept-b", queues=2)
    await gateway.topics.list()
    async with AdminClient(cluster.namesrv_address) as admin:
        await admin.topics.create(admin_bodies.TopicConfig(topic_name="kept-b", read_queue_nums=7, write_queue_nums=7))
        await admin.groups.create(admin_bodies.SubscriptionGroupConfig(group_name="kept-group"))
    rows = {row.name: row for row in (await gateway.topics.list()).rows}
    assert rows["kept-b"].write_queues == 7
    settings, _ = await gateway.groups.settings()
    assert "kept-group" in settings


async def test_what_was_read_of_a_topic_is_in_the_next_listing(gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("kept-c")
    [row] = [row for row in (await gateway.topics.list()).rows if row.name == "kept-c"]
    [read] = await gateway.topics.with_metrics([row], max_age_s=0.0)
    [listed] = [row for row in (await gateway.topics.list()).rows if row.name == "kept-c"]
    assert read.metrics is not None and listed.metrics is read.metrics


async def test_of_many_rows_those_read_longest_ago_are_read(gateway: Gateway, make_topic: Topic) -> None:
    """A page of a large cluster asks for a bounded number, and the next look for the others."""
    names = [await make_topic(f"bounded-{number}") for number in range(5)]
    rows = [row for row in (await gateway.topics.list()).rows if row.name in names]
    first = {row.name for row in await gateway.topics.with_metrics(rows, reads_max=3) if row.metrics is not None}
    assert len(first) == 3
    second = await gateway.topics.with_metrics(rows, reads_max=3)
    assert all(row.metrics is not None for row in second)


def test_of_all_offsets_only_the_groups_own_are_taken() -> None:
    offsets = {"orders@billing": {0: 5, 1: 6}, "orders@other": {0: 9}, "%RETRY%billing@billing": {0: 1}}
    body = admin_bodies.ConsumerOffsetTable(offset_table=offsets).to_json()
    assert admin_bodies.offsets_of_group(body, "billing") == {"orders": {0: 5, 1: 6}, "%RETRY%billing": {0: 1}}
    assert admin_bodies.offsets_of_group(b'{"offsetTable":{"orders@billing":{0:5}}}', "billing") == {
        "orders": {0: 5}
    }, "fastjson's"
    assert admin_bodies.offsets_of_group(body, "none") == {}
