"""What a topic keeps, and messages that wait for a time of their own."""

from __future__ import annotations

import dataclasses
import time

import pytest
from django import forms

from dashboard.cluster.gateway import Gateway
from dashboard.forms.fields import DURATION_MS_MAX, duration_text, parse_duration, parse_moment
from dashboard.messages.forms import TestMessageForm, delay_levels
from dashboard.models.management import Role, User
from gantrymq.message import properties as names
from tests.dashboard.conftest import Client, Topic, api_for
from tests.harness import ServingCluster
from tests.waiting import until


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("1 ms", 1), ("90s", 90_000), ("1.5 s", 1500), ("15 min", 900_000), ("2 H", 7_200_000), ("7 d", 604_800_000)],
)
def test_how_long_is_read_and_written_back(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds
    assert parse_duration(duration_text(milliseconds)) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "0 s", "-1 s", "1e9 d", "999999999 d", "٣ s " * 3, "7 d; rm", "d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(forms.ValidationError):
        parse_duration(text)


def test_a_moment_without_a_zone_is_utc() -> None:
    assert parse_moment("1970-01-01 00:00:01") == 1000
    assert parse_moment("1970-01-01T02:00:01+02:00") == 1000
    for text in ("now", "1969-01-01", "99999-01-01", "0001-01-01"):
        with pytest.raises(forms.ValidationError):
            parse_moment(text)


def test_there_are_eighteen_levels() -> None:
    levels = delay_levels()
    assert levels[1] == (1, "1 · 1\u202fs") and levels[18] == (18, "18 · 2\u202fh") and len(levels) == 19


async def test_retention_is_made_shown_changed_and_gone(
    log_in: Client, gateway: Gateway, cluster: ServingCluster
) -> None:
    client = await log_in(Role.OPERATOR)
    form = {"name": "kept", "queues": "2", "perm": "read-write", "keep_for": "12 h", "keep_messages": "1000"}
    assert (await client.post("/topics/create", form)).status_code == 302
    attributes = cluster.broker.topics.configs["kept"].attributes
    assert attributes == {"retention.ms": "43200000", "retention.messages": "1000"}
    page = (await client.get("/topic/kept")).content.decode()
    assert "Keeps messages for 12\u202fh, at most 1\u202f000 a queue" in page
    page = (await client.get("/topic/kept/settings")).content.decode()
    assert 'value="12 h"' in page and 'value="1000"' in page

    change = {"queues": "2", "perm": "read-write", "keep_for": "", "keep_messages": "50"}
    assert (await client.post("/topic/kept/settings", change)).status_code == 302
    assert cluster.broker.topics.configs["kept"].attributes == {"retention.messages": "50"}
    refused = await client.post("/topic/kept/settings", change | {"keep_for": "for ever"})
    assert refused.status_code == 422 and "Write it like" in refused.content.decode()


async def test_what_has_no_effect_is_shown_as_that(log_in: Client, make_topic: Topic, cluster: ServingCluster) -> None:
    client = await log_in(Role.READER)
    name = await make_topic("kept-only")
    config = cluster.broker.topics.configs[name]
    assert "without effect" not in (await client.get(f"/topic/{name}")).content.decode()
    attributes = {"queue.type": "BatchCQ", "message.type": "FIFO", "retention.ms": "5000"}
    cluster.broker.topics.update(dataclasses.replace(config, attributes=attributes))
    page = (await client.get(f"/topic/{name}")).content.decode()
    assert "Kept, but without effect at a GantryMQ broker: queue.type=BatchCQ</p>" in page


async def test_rest_tells_what_has_no_effect_here(make_topic: Topic, cluster: ServingCluster, admin: User) -> None:
    name = await make_topic("kept-only-rest")
    config = cluster.broker.topics.configs[name]
    cluster.broker.topics.update(dataclasses.replace(config, attributes={"queue.type": "BatchCQ"}))
    status, told = await (await api_for(admin)).call("get", f"/topics/{name}")
    assert (status, told["without_effect"]) == (200, ["queue.type=BatchCQ"])


async def test_rest_knows_retention_and_leaves_what_is_absent(gateway: Gateway, admin: User) -> None:
    api = await api_for(admin)
    status, made = await api.call("post", "/topics", {"name": "kept-rest", "retention_ms": 60_000})
    assert (status, made["retention_ms"], made["retention_messages"]) == (201, 60_000, None)
    status, changed = await api.call("put", "/topics/kept-rest", {"retention_messages": 10})
    assert (status, changed["retention_ms"], changed["retention_messages"]) == (200, 60_000, 10)
    status, changed = await api.call("put", "/topics/kept-rest", {"retention_ms": 0})
    assert (status, changed["retention_ms"], changed["retention_messages"]) == (200, None, 10)
    assert (await api.call("put", "/topics/kept-rest", {"retention_ms": -5}))[0] == 422
    long = {"retention_ms": 1 << 53}
    run = {"what": "retention", "topics": ["kept-rest"]}
    for method, path, body in (
        ("put", "/topics/kept-rest", long),
        ("post", "/topics", long | {"name": "kept-long"}),
        ("post", "/topic-changes", long | run),
    ):
        _, refused = await api.call(method, path, body)
        assert refused["fields"] == {"retention_ms": [f"Input should be less than or equal to {DURATION_MS_MAX}"]}


async def test_a_message_waits_for_its_time(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    topic = await make_topic("waiting", queues=1)
    client = await log_in(Role.OPERATOR)
    before = cluster.broker.timer.pending
    sent = await client.post(f"/topic/{topic}/send", {"body": "x", "deliver": "2 h"}, headers={"hx-request": "true"})
    assert sent.status_code == 200 and "waiting for its time" in sent.content.decode()
    await until(lambda: cluster.broker.timer.pending == before + 1)
    assert (await gateway.topics.get(topic)).stored == 0
    now = await client.post(f"/topic/{topic}/send", {"body": "y", "delay_level": "0"}, headers={"hx-request": "true"})
    assert "Stored in" in now.content.decode() and (await gateway.topics.get(topic)).stored == 1


def test_the_form_makes_what_a_message_takes() -> None:
    form = TestMessageForm({"deliver": "90 s"})
    assert form.is_valid() and form.cleaned_data["deliver"] == {"delay_seconds": 90.0}
    form = TestMessageForm({"deliver": "2030-01-01 00:00"})
    assert form.is_valid() and form.cleaned_data["deliver"] == {"deliver_at": 1893456000.0}
    assert form.cleaned_data["delay_level"] == 0
    for given in (
        {"deliver": "90 s", "delay_level": "3"},
        {"delay_level": "19"},
        {"deliver": "soon"},
        {"properties": f"{names.TIMER_DELIVER_MS}={int(time.time() * 1000)}"},
    ):
        assert not TestMessageForm(given).is_valid(), given
