"""REST: consumer groups and brokers' settings, for programs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from dashboard.cluster.gateway import Gateway
from dashboard.groups.group_cache import group_book
from dashboard.live.sampler import Sampler
from dashboard.models.management import Role, User
from gantrymq import MessageModel
from gantrymq.client.admin.clients import ClientAdmin
from gantrymq.client.admin.groups import broadcasts
from gantrymq.message.model import Message
from gantrymq.remoting.admin_bodies import Connection, ConsumerConnection, SubscriptionParty
from tests.appliance.cli.running_gantry import run_gantry
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.group_places import placed
from tests.dashboard.groups.group_members import consuming, waited_for
from tests.harness import ServingCluster

Users = dict[str, User]


async def group_with_lag(gateway: Gateway, make_topic: Topic, name: str) -> str:
    topic = await make_topic(f"{name}-topic", queues=1, messages=[Message(f"{name}-topic", b"x")] * 5)
    await placed(gateway, name, topic, {0: 2})
    await asyncio.sleep(0.01)
    return topic


async def test_groups_are_listed_with_their_lag_in_time(users: Users, gateway: Gateway, make_topic: Topic) -> None:
    topic = await group_with_lag(gateway, make_topic, "rest-lag")
    api = await api_for(users["reader"], "read")
    for address in ("/groups?q=rest-lag", f"/groups?topic={topic}"):
        status, listed = await api.call("get", address)
        assert (status, listed["total"]) == (200, 1), address
        [group] = listed["items"]
        assert (group["name"], group["lag"], group["members"], group["disagrees"]) == ("rest-lag", 3, 0, False)
        assert group["lag_ms"] > 0
    status, whole = await api.call("get", "/groups/rest-lag")
    assert status == 200 and whole["queues"][0]["consumer_offset"] == 2 and whole["queues"][0]["lag_ms"] > 0
    assert whole["lag"] == 3 and {"in_rate", "out_rate", "seen_at"} <= whole["trend"].keys()
    rates = [name for name in (*whole, *whole["trend"]) if name.endswith("_rate")]
    assert sorted(rates) == ["in_rate", "out_rate"] and "lag" not in whole["trend"], "each figure once"
    assert (await api.call("get", "/groups/rest-nowhere"))[0] == 404
    assert (await api.call("get", "/groups?topic=rest-nowhere"))[0] == 404


async def test_no_lag_is_made_up_for_a_group_that_broadcasts(
    log_in: Client, gateway: Gateway, make_topic: Topic, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Offsets that brokers have are of the time when its members shared the queues."""
    await group_with_lag(gateway, make_topic, "rest-casting")
    browser = await log_in("reader")
    api = await api_for(await User.objects.aget(role=Role.READER), "read")
    model = MessageModel.BROADCASTING
    async with consuming(gateway, "rest-casting", "rest-casting-topic", model=model, offsets_folder=tmp_path):

        async def is_known() -> bool:
            return bool((await api.call("get", "/groups/rest-casting"))[1]["trend"]["state"] == "broadcasting")

        await waited_for(is_known)
        status, listed = await api.call("get", "/groups?q=rest-casting")
        [group] = listed["items"]
        assert (status, group["is_broadcasting"], group["lag"], group["members"]) == (200, True, None, 1)
        assert "own offsets" in group["problem"]
        status, whole = await api.call("get", "/groups/rest-casting")
        assert (whole["lag"], whole["queues"], whole["trend"]["state"]) == (None, [], "broadcasting")
        operator = await log_in("operator")
        assert (await operator.get("/group/rest-casting/reset")).status_code == 409
        assert "/group/rest-casting/reset" not in (await operator.get("/group/rest-casting")).content.decode()
        writing = await api_for(await User.objects.aget(role=Role.OPERATOR))
        wanted = {"topics": ["rest-casting-topic"], "to": "end", "dry_run": True}
        status, refused = await writing.call("post", "/groups/rest-casting/reset", wanted)
        assert status == 409 and "nothing at the brokers to reset" in refused["detail"], refused
        for language, words in (("en", "each member keeps its own offsets"), ("zh-hans", "广播")):
            await browser.post("/preferences/language", {"language": language, "back": "/"})
            page = (await browser.get("/group/rest-casting")).content.decode()
            assert words in page and "up to date" not in page and "已追上" not in page, language
            assert "data-history-points" not in page and "row.rest-casting.members" in page, "only what applies to it"
            assert not re.findall(r'data-live="row.rest-casting.(?:lag|behind|in|out|zero|retries|dead)"', page)
            assert (">broadcasting<" in page) == (language == "en"), "the model is said in the page's language, too"
        for verb, words in (("lag", "each member keeps its own offsets"), ("list", "kept by members")):
            args = ("rest-casting",) if verb == "lag" else ()
            ran = await asyncio.to_thread(run_gantry, capsys, "admin", "-n", gateway.namesrv, "groups", verb, *args)
            assert ran.code == 0 and words in ran.out, ran

    async def is_alone() -> bool:
        await group_book.look_round(gateway)
        return bool((await api.call("get", "/groups?q=rest-casting"))[1]["items"][0]["members"] == 0)

    await waited_for(is_alone)
    _, whole = await api.call("get", "/groups/rest-casting")
    assert (whole["lag"], whole["queues"], whole["trend"]["state"]) == (None, [], "broadcasting")
    await browser.post("/preferences/language", {"language": "en", "back": "/"})
    page = (await browser.get("/group/rest-casting")).content.decode()
    assert "The group has no members." in page and "offsets are kept" not in page and "Lag, time" not in page


def quarrel() -> ConsumerConnection:
    """What a broker tells of a group after the heartbeat of the one member that broadcasts."""
    parties = [SubscriptionParty([model], model) for model in ("CLUSTERING", "BROADCASTING")]
    return ConsumerConnection([Connection("c")], message_model="BROADCASTING", disagreement=parties)


async def test_one_member_that_broadcasts_hides_no_lag_of_the_others(
    log_in: Client, gateway: Gateway, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await group_with_lag(gateway, make_topic, "rest-mixed")

    async def told(clients: ClientAdmin, address: str, group: str) -> ConsumerConnection:
        return quarrel()

    monkeypatch.setattr(ClientAdmin, "consumers_at", told)
    browser = await log_in("reader")
    api = await api_for(await User.objects.aget(role=Role.READER), "read")
    [group] = (await api.call("get", "/groups?q=rest-mixed"))[1]["items"]
    assert (group["is_broadcasting"], group["lag"], group["members"], group["disagrees"]) == (False, 3, 1, True)
    whole = (await api.call("get", "/groups/rest-mixed"))[1]
    assert (whole["lag"], len(whole["queues"])) == (3, 1)
    page = (await browser.get("/group/rest-mixed")).content.decode()
    assert 'data-cell="c lag"' in page, "in the table of members, too"


def test_a_group_broadcasts_only_where_all_brokers_that_know_members_say_so() -> None:
    alone, member = ConsumerConnection(message_model="BROADCASTING"), [Connection("c")]
    casting, sharing = (ConsumerConnection(member, message_model=model) for model in ("BROADCASTING", "CLUSTERING"))
    assert broadcasts([casting, ConsumerConnection()]) and broadcasts([casting, casting])
    for connections in ([], [alone], [casting, sharing], [quarrel()], [casting, quarrel()]):
        assert not broadcasts(connections)


@pytest.mark.parametrize(
    ("name", "address", "body"),
    [
        ("strict-a", "/groups/strict-a/reset", {"topics": ["strict-a-topic"], "to": "end", "dryrun": True}),
        ("strict-b", "/groups/strict-b/reset", {"topics": ["strict-b-topic"], "to": "end", "dry-run": True}),
        ("strict-c", "/dead-letters/strict-c/runs", {"dry_run": True}),
        ("strict-d", "/topic-changes", {"what": "delete", "topics": ["strict-d-topic"], "dry_run": True}),
    ],
)
async def test_a_dry_run_where_there_is_none_does_nothing(
    users: Users, gateway: Gateway, make_topic: Topic, name: str, address: str,
    body: dict[str, Any],
) -> None:  # fmt: skip
    topic = await group_with_lag(gateway, make_topic, name)
    api = await api_for(users["operator"])
    status, told = await api.call("post", address, body)
    assert (status, list(told["fields"])) == (422, [next(key for key in body if key.startswith("dry"))])
    assert (await api.call("get", f"/topics/{topic}"))[0] == 200
    status, whole = await api.call("get", f"/groups/{name}")
    assert whole["queues"][0]["consumer_offset"] == 2


async def test_a_dry_run_tells_no_running_consumer(users: Users, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("told-topic", queues=1, messages=[Message("told-topic", b"x")])
    api = await api_for(users["operator"])
    async with consuming(gateway, "told", topic):

        async def is_online() -> bool:
            status, planned = await api.call("post", "/groups/told/reset", body)
            return status == 200 and bool(planned["items"][0]["is_online"])

        body = {"topics": [topic], "to": "end", "dry_run": True}
        await waited_for(is_online)
        [plan] = (await api.call("post", "/groups/told/reset", body))[1]["items"]
        assert (plan["is_online"], plan["is_done"], plan["consumers_told"]) == (True, False, False)


async def test_a_dry_run_says_what_would_happen_and_the_run_does_it(
    users: Users, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    topic = await group_with_lag(gateway, make_topic, "rest-reset")
    api, admin = await api_for(users["operator"]), await gateway.calls.admin()
    body: dict[str, Any] = {"topics": [topic], "to": "end"}
    status, planned = await api.call("post", "/groups/rest-reset/reset", body | {"dry_run": True})
    [plan] = planned["items"]
    assert (status, plan["is_done"], plan["skipped"], plan["repeated"]) == (200, False, 3, 0)
    assert not plan["consumers_told"]
    assert plan["queues"][0]["before"] == 2 and plan["queues"][0]["after"] == 5
    assert await admin.offsets.get_at(cluster.broker_address, "rest-reset", topic, 0) == 2
    status, done = await api.call("post", "/groups/rest-reset/reset", body)
    assert (status, done["items"][0]["is_done"], done["items"][0]["consumers_told"]) == (200, True, False)
    assert await admin.offsets.get_at(cluster.broker_address, "rest-reset", topic, 0) == 5
    moment = {"topics": [topic], "to": "time", "at": "2020-01-01T00:00:00Z", "dry_run": True}
    assert (await api.call("post", "/groups/rest-reset/reset", moment))[1]["items"][0]["repeated"] == 5


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"to": "end"}, "topics"),
        ({"topics": ["other"], "to": "end"}, "topics"),
        ({"to": "sideways"}, "to"),
        ({"to": "time"}, "at"),
        ({"to": "offset", "offset": -1}, "offset"),
        ({"to": "end", "dry_run": "perhaps"}, "dry_run"),
    ],
)
async def test_a_reset_that_can_not_be_is_named_by_field(
    body: dict[str, Any], field: str, users: Users, gateway: Gateway, make_topic: Topic
) -> None:
    if not any(row.name == "rest-field-topic" for row in (await gateway.topics.list()).rows):
        await group_with_lag(gateway, make_topic, "rest-field")
    given = body if field == "topics" else {"topics": ["rest-field-topic"]} | body
    status, answer = await (await api_for(users["operator"])).call("post", "/groups/rest-field/reset", given)
    assert status == 422 and field in answer["fields"]


async def test_settings_are_read_checked_and_changed(users: Users, gateway: Gateway, cluster: ServingCluster) -> None:
    broker, api = cluster.broker, await api_for(users["admin"], "config")
    address, before = f"/brokers/{broker.config.broker_name}/settings", broker.config.trace_on
    status, seen = await api.call("get", address)
    by_key = {item["key"]: item for item in seen["items"]}
    assert status == 200 and by_key["traceOn"]["value"] == str(before).lower() and by_key["traceOn"]["refusal"] is None
    assert by_key["storePathRootDir"]["refusal"]

    change = {"changes": {"traceOn": str(not before).lower()}}
    status, planned = await api.call("put", address, change | {"dry_run": True})
    assert (status, planned["is_done"], len(planned["changes"])) == (200, False, 1)
    assert broker.config.trace_on is before
    status, done = await api.call("put", address, change)
    assert (status, done["is_done"]) == (200, True) and "holds until" in done["detail"]
    assert broker.config.trace_on is not before
    assert (await api.call("put", address, {"changes": {"traceOn": str(before).lower()}}))[0] == 200

    status, refused = await api.call("put", address, {"changes": {"traceOn": "x", "storePathRootDir": "/tmp"}})
    assert status == 422 and set(refused["fields"]) == {"traceOn", "storePathRootDir"}
    assert broker.config.trace_on is before
    assert (await api.call("get", "/brokers/no-such/settings"))[0] == 404


async def test_the_cluster_tells_of_services(users: Users, gateway: Gateway) -> None:
    await Sampler(gateway).sample()
    status, seen = await (await api_for(users["reader"], "read")).call("get", "/cluster")
    services = seen["brokers"][0]["services"]
    assert status == 200 and services["name_servers_known"] == 1 and services["tables_not_saved"] == []
