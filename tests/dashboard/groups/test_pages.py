"""Consumer groups: how far behind, who is in them, and moving one."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from dashboard.cluster.errors import BrokerUnreachable, NotAllowed
from dashboard.cluster.gateway import Gateway, use_gateway
from dashboard.cluster.group_values import ResetPlan, known_lag_ms, worst_lag_ms
from dashboard.cluster.units import THIN
from dashboard.groups import group_cache as books
from dashboard.groups import lag_checks, trend
from dashboard.groups.group_cache import group_book
from dashboard.groups.member_load import loads_of
from dashboard.groups.moving import KEPT, astray, move_all, undone
from dashboard.models.group_moves import GroupMove
from dashboard.models.management import Role, User
from gantrymq import ConsumeResult
from gantrymq.client.admin.offsets import TO_END
from gantrymq.client.admin.results import QueueMove
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.appliance.broker.pop.popper import popping
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.group_places import placed
from tests.dashboard.groups.group_members import consuming, group_that
from tests.dashboard.silent_broker import NAME as SILENT
from tests.dashboard.silent_broker import silent_broker
from tests.harness import ServingCluster
from tests.waiting import until


def cells(page: str) -> list[str]:
    return [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)]


@pytest.mark.parametrize(
    ("lag", "told", "known"), [(None, 5, None), (0, 0, 0), (0, 7, 0), (3, 0, None), (3, 1500, 1500)]
)
def test_a_lag_in_time_that_nobody_told_is_unknown(lag: int | None, told: int, known: int | None) -> None:
    assert known_lag_ms(lag, told) == known


def test_the_worst_queue_counts_and_one_unknown_makes_all_unknown() -> None:
    assert worst_lag_ms([]) is None
    assert worst_lag_ms([(None, None)]) is None
    assert worst_lag_ms([(0, 0), (3, 1500), (None, None)]) == 1500
    assert worst_lag_ms([(0, 0), (3, None)]) is None


async def test_lag_is_shown_in_messages_and_in_time(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("group-lag", queues=1, messages=[Message("group-lag", b"x")] * 3)
    await placed(gateway, "g-behind", topic, {0: 1})
    await asyncio.sleep(0.02)
    client = await log_in("reader")
    for address in (f"/topic/{topic}/groups", "/groups?q=g-behind"):
        told = cells((await client.get(address)).content.decode())
        name, lag, lag_time, members = told[:4] if len(told) == 5 else (told[0], *told[3:5], told[8])
        assert (name, lag, members) == ("g-behind", "2", "0"), address
        assert re.fullmatch(r"[\d.]+\u202f(ms|s|min)", lag_time), lag_time
    page = (await client.get("/group/g-behind")).content.decode()
    assert "group-lag" in page and "The group has no members" in page
    assert f'href="/topic/{topic}/queues"' in page
    tiles = (await client.get("/group/g-behind", headers={"hx-target": "group-tiles"})).content.decode()
    assert tiles.lstrip().startswith('<div id="group-tiles"') and "no members" not in tiles
    assert (await client.get("/group/g-behin", headers={"hx-target": "group-tiles"})).status_code == 404


async def test_a_group_without_a_place_has_no_lag_rather_than_none(log_in: Client, gateway: Gateway) -> None:
    await placed(gateway, "g-placeless", "nothing", {})
    page = (await (await log_in("reader")).get("/groups?q=g-placeless")).content.decode()
    assert cells(page)[1] == "offline" and cells(page)[3:] == ["—", "—", "—", "—", "—", "0", "—", "—"]


async def test_a_member_its_queues_and_wishes_are_shown(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("group-members", queues=2, messages=[Message("group-members", b"x", tags="a")])
    async with consuming(gateway, "g-members", topic, "a || b", instance_name="one"):
        await group_that(gateway, "g-members", lambda seen: any(q.owner for q in seen.queues if q.topic == topic))
        page = (await (await log_in("reader")).get("/group/g-members")).content.decode()
        [member] = (await gateway.groups.get("g-members")).clients
        assert member.client_id in page and member.address in page
        assert "a || b" in page and "disagrees" not in page


async def test_members_that_disagree_are_flagged_on_pages(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("group-disagree")
    async with (
        consuming(gateway, "g-disagree", topic, "left", instance_name="l"),
        consuming(gateway, "g-disagree", topic, "right", instance_name="r"),
    ):
        await group_that(gateway, "g-disagree", lambda seen: len(seen.parties) == 2)
        client = await log_in("reader")
        for address in (f"/topic/{topic}/groups", "/groups?q=g-disagree"):
            assert "disagrees" in (await client.get(address)).content.decode(), address
        page = (await client.get("/group/g-disagree")).content.decode()
        ids = [one for party in (await gateway.groups.get("g-disagree")).parties for one in party.client_ids]
        assert '<span class="shared">' in page and all(f'<span title="{one}">…' in page for one in ids), ids
        assert "have different subscriptions" in page
        assert "<code>left</code>" in page and "<code>right</code>" in page


async def test_a_group_that_gets_nothing_says_so(log_in: Client, gateway: Gateway, cluster: ServingCluster) -> None:
    config = SubscriptionGroupConfig(group_name="g-off", consume_enable=False)
    await (await gateway.calls.admin()).groups.create_at(cluster.broker_address, config)
    client = await log_in("reader")
    assert "suspended" in (await client.get("/groups?q=g-off")).content.decode()
    assert "The group receives nothing" in (await client.get("/group/g-off")).content.decode()


async def test_the_clusters_own_groups_are_hidden_until_asked(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("reader")
    assert "TOOLS_CONSUMER" not in (await client.get("/groups")).content.decode()
    assert "TOOLS_CONSUMER" in (await client.get("/groups?show=system")).content.decode()
    assert "Nothing matches" in (await client.get("/groups?q=there-is-none")).content.decode()


async def test_an_unknown_group_is_not_found(log_in: Client, gateway: Gateway) -> None:
    client = await log_in()
    for address in ("/group/g-nowhere", "/group/g-nowhere/reset"):
        response = await client.get(address)
        assert response.status_code == 404 and "No such group" in response.content.decode()


async def test_a_silent_cluster_is_an_error_page(log_in: Client) -> None:
    use_gateway(Gateway("127.0.0.1:9"))
    client = await log_in()
    for address in ("/groups", "/group/x", "/group/x/reset"):
        page = await client.get(address)
        assert page.status_code == 503
        assert f'<a href="{address}">Reload this page</a>' in page.content.decode(), "the Overview has no more to show"
    use_gateway(None)


async def test_what_is_known_is_shown_when_one_broker_is_silent(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    topic = await make_topic("group-half", queues=1, messages=[Message("group-half", b"x")] * 3)
    await placed(gateway, "g-half", topic, {0: 1})
    client, api = await log_in("reader"), await api_for(await User.objects.aget(role="admin"))
    async with silent_broker(cluster):
        use_gateway(late := Gateway(cluster.namesrv_address))
        page = (await client.get("/groups?q=g-half")).content.decode()
        name, lag, lag_time, members = (cells(page)[at].replace(THIN, " ") for at in (0, 3, 4, 8))
        assert (name, lag, members) == ("g-half", "≥ 2", "≥ 0") and lag_time.startswith("≥ ")
        assert f"without {SILENT}: no answer" in page
        assert f"≥{THIN}2" in (await client.get("/group/g-half")).content.decode()
        _, row = await api.call("get", "/groups?q=g-half")
        assert (row["items"][0]["lag"], row["items"][0]["is_partial"]) == (2, True)
        await late.close()


# ---- moving


async def test_a_preview_says_what_is_skipped_and_changes_nothing(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    topic = await make_topic("reset-preview", queues=1, messages=[Message("reset-preview", b"x")] * 5)
    await placed(gateway, "g-preview", topic, {0: 2})
    client = await log_in(Role.OPERATOR)
    page = (await client.get(f"/group/g-preview/reset?topic={topic}&to=end")).content.decode()
    assert cells(page)[1:5] == ["2", "5", "3", "0"]
    assert "3 messages" in page and "Type <b" in page
    page = (await client.get(f"/group/g-preview/reset?topic={topic}&to=begin")).content.decode()
    assert cells(page)[1:5] == ["2", "0", "0", "2"]
    admin = await gateway.calls.admin()
    assert await admin.offsets.get_at(cluster.broker_address, "g-preview", topic, 0) == 2


async def test_the_typed_name_moves_it(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    topic = await make_topic("reset-do", queues=1, messages=[Message("reset-do", b"x")] * 5)
    await placed(gateway, "g-move", topic, {0: 4})
    client, admin = await log_in(Role.OPERATOR), await gateway.calls.admin()
    form = {"topic": topic, "to": "offset", "offset": "1"}
    wrong = await client.post("/group/g-move/reset", form | {"typed_name": "g-mov"})
    assert wrong.status_code == 422 and "Nothing was changed." in wrong.content.decode()
    assert await admin.offsets.get_at(cluster.broker_address, "g-move", topic, 0) == 4
    done = await client.post("/group/g-move/reset", form | {"typed_name": "g-move"})
    assert (done.status_code, done.headers["Location"]) == (302, "/group/g-move")
    assert await admin.offsets.get_at(cluster.broker_address, "g-move", topic, 0) == 1


async def test_a_running_group_is_told_and_takes_no_offset(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("reset-running", queues=1, messages=[Message("reset-running", b"x")] * 3)
    await placed(gateway, "g-running", topic, {0: 0})
    client = await log_in(Role.OPERATOR)
    async with consuming(gateway, "g-running", topic) as seen:
        await until(lambda: len(seen) >= 3)
        form = {"topic": topic, "to": "offset", "offset": "0", "typed_name": "g-running"}
        refused = await client.post("/group/g-running/reset", form)
        assert refused.status_code == 422 and "The group is running" in refused.content.decode()
        done = await client.post("/group/g-running/reset", form | {"to": "begin", "offset": ""})
        assert done.status_code == 302
        await until(lambda: len(seen) >= 6)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("to=time", "Enter a time"), ("to=time&at=yesterday", "Write it like"),
        ("to=time&at=0001-01-01", "before 1970"), ("to=time&at=2099-01-01", "in the future"),
        ("to=offset", "Enter an offset"), ("to=shift&by=0", "Enter a number of messages"),
        ("to=copy", "Choose a group"), ("to=offset&offset=-1", "greater than or equal to 0"),
        ("to=sideways", "Select a valid choice"), ("to=end&topic=%3Cscript%3E", "Select a valid choice"),
    ],
)  # fmt: skip
async def test_where_to_is_checked(log_in: Client, gateway: Gateway, make_topic: Topic, query: str, words: str) -> None:
    if not any(row.name == "reset-odd" for row in (await gateway.topics.list()).rows):
        await placed(gateway, "g-odd", await make_topic("reset-odd", queues=1), {0: 0})
    given = query if "topic=" in query else f"topic=reset-odd&{query}"
    response = await (await log_in(Role.OPERATOR)).get(f"/group/g-odd/reset?{given}")
    assert response.status_code == 422 and words in response.content.decode()
    assert "<script>" not in response.content.decode()


async def test_it_moves_by_so_many_messages_and_to_where_another_group_is(
    log_in: Client, gateway: Gateway, make_topic: Topic
) -> None:
    topic = await make_topic("reset-shift", queues=1, messages=[Message("reset-shift", b"x")] * 9)
    for group, offset in (("g-shift", 4), ("g-shift-other", 7)):
        await placed(gateway, group, topic, {0: offset})
    client, api = await log_in(Role.OPERATOR), await api_for(await User.objects.aget(role="operator"))
    for by, after in (("3", "7"), ("-3", "1"), ("-99", "0"), ("99", "9")):
        page = (await client.get(f"/group/g-shift/reset?topic={topic}&to=shift&by={by}")).content.decode()
        assert cells(page)[1:3] == ["4", after], by
    form = {"topic": topic, "to": "shift", "by": "-3", "typed_name": "g-shift"}
    answer = await client.post("/group/g-shift/reset", form, follow=True)
    assert "are reset. The new offsets were read back and match" in answer.content.decode()
    status, told = await api.call(
        "post", "/groups/g-shift/reset", {"topics": [topic], "to": "copy", "source": "g-shift-other"}
    )
    [done] = told["items"]
    assert (status, done["queues"][0]["before"], done["queues"][0]["after"], done["is_verified"]) == (200, 1, 7, True)
    none = {"topics": [topic], "to": "copy", "source": "g-shift-none"}
    assert (await api.call("post", "/groups/g-shift/reset", none))[0] == 409


async def test_a_move_can_be_undone_for_a_day(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("reset-undo", queues=2, messages=[Message("reset-undo", b"x")] * 8)
    await placed(gateway, "g-undo", topic, {0: 1, 1: 2})
    client, api = await log_in(Role.OPERATOR), await api_for(await User.objects.aget(role="operator"))
    undo = {"topics": [topic], "to": "undo"}
    assert (await api.call("post", "/groups/g-undo/reset", undo))[0] == 409, "it was never moved"
    assert "Undo" not in (await client.get("/group/g-undo")).content.decode()

    form = {"topic": topic, "to": "end", "typed_name": "g-undo"}
    assert (await client.post("/group/g-undo/reset", form)).status_code == 302
    page = (await client.get("/group/g-undo")).content.decode()
    assert "Reset by operator" in page and "in: reset-undo" in page and "to=undo" in page
    assert "Undo" not in (await (await log_in("reader")).get("/group/g-undo")).content.decode()
    status, told = await api.call("post", "/groups/g-undo/reset", undo)
    [done] = told["items"]
    assert (status, done["is_verified"]) == (200, True)
    assert {row["queue_id"]: row["after"] for row in done["queues"]} == {0: 1, 1: 2}

    await GroupMove.objects.aupdate(at=timezone.now() - KEPT)
    assert (await api.call("post", "/groups/g-undo/reset", undo))[0] == 409


def test_going_back_stays_within_what_is_stored() -> None:
    queues = [MessageQueue("t", "broker-a", number) for number in range(3)]
    places = '[["broker-a", 0, 5], ["broker-a", 1, 99], ["broker-a", 2, null]]'
    begin = [QueueMove(queue, "a", 20, 10) for queue in queues]
    end = [QueueMove(queue, "a", 20, 30) for queue in queues]
    moves = undone(GroupMove(places=places), begin, end)
    assert [(one.queue.queue_id, one.before, one.after) for one in moves] == [(0, 20, 10), (1, 20, 30)]
    with pytest.raises(NotAllowed):
        undone(GroupMove(places='[["broker-a", 2, null]]'), begin, end)


def test_a_queue_that_stands_elsewhere_afterwards_is_found() -> None:
    queues = [MessageQueue("t", "broker-a", number) for number in range(3)]
    planned = [QueueMove(queue, "a", 1, 5) for queue in queues]
    found = [QueueMove(queue, "a", now, 9) for queue, now in zip(queues, (5, 6, None), strict=True)]
    assert astray(planned, found) == planned[1:]


async def test_several_topics_move_at_once(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topics = [await make_topic(f"several-{n}", queues=1, messages=[Message(f"several-{n}", b"x")] * 3) for n in (1, 2)]
    for topic in topics:
        await placed(gateway, "g-several", topic, {0: 1})
    client = await log_in(Role.OPERATOR)
    asked = urlencode({"topic": topics, "to": "end"}, doseq=True)
    page = (await client.get(f"/group/g-several/reset?{asked}")).content.decode()
    assert "<b>4 messages</b> are skipped" in page and "in 2 topics" in page
    assert "gantry admin reset g-several several-1 several-2 --to end" in page and "/groups/g-several/reset" in page
    form = {"topic": topics, "to": "end", "typed_name": "g-several"}
    answer = await client.post("/group/g-several/reset", form, follow=True)
    assert answer.content.decode().count("offsets in several-") == 2
    assert await places(gateway, "g-several") == dict.fromkeys(topics, 3)
    moved = (await client.get("/group/g-several")).content.decode()
    assert "Reset by operator" in moved and "in: several-1, several-2." in moved
    assert f'href="/group/g-several/reset?{asked.replace("end", "undo").replace("&", "&amp;")}"' in moved
    api = await api_for(await User.objects.aget(role=Role.OPERATOR))
    body = {"topics": topics, "to": "begin"}
    status, told = await api.call("post", "/groups/g-several/reset", body | {"dry_run": True})
    assert (status, [one["topic"] for one in told["items"]]) == (200, topics)
    assert not any(one["is_done"] for one in told["items"])
    _, told = await api.call("post", "/groups/g-several/reset", body)
    assert [(one["is_done"], one["is_verified"], one["repeated"]) for one in told["items"]] == [(True, True, 3)] * 2
    assert await places(gateway, "g-several") == dict.fromkeys(topics, 0)
    assert (await api.call("post", "/groups/g-several/reset", body | {"topics": [topics[0], "no-such"]}))[0] == 422
    assert (await api.call("post", "/groups/g-several/reset", body | {"topics": []}))[0] == 422


async def places(gateway: Gateway, group: str) -> dict[str, int | None]:
    return {queue.topic: queue.consumer_offset for queue in (await gateway.groups.get(group)).queues}


async def test_a_topic_that_can_not_be_moved_is_told_and_holds_up_no_other(
    gateway: Gateway,
    make_topic: Topic,
    monkeypatch: pytest.MonkeyPatch,
    transactional_db: None,
) -> None:
    topics = [await make_topic(f"hold-{n}", queues=1, messages=[Message(f"hold-{n}", b"x")]) for n in (1, 2)]
    for topic in topics:
        await placed(gateway, "g-hold", topic, {0: 0})
    plans = [await gateway.groups.plan_reset("g-hold", topic, TO_END, None) for topic in topics]
    reset = gateway.groups.reset

    async def refused(plan: ResetPlan) -> bool:
        if plan.topic == "hold-1":
            raise BrokerUnreachable("no answer")
        return await reset(plan)

    monkeypatch.setattr(gateway.groups, "reset", refused)
    first, second = await move_all(gateway, plans, "ada")
    assert (first.trouble, first.is_verified) == ("no answer", None)
    assert (second.trouble, second.is_verified) == ("", True)
    assert await places(gateway, "g-hold") == {"hold-1": 0, "hold-2": 1}


async def test_how_long_ago_is_a_time_too(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("reset-ago", queues=1, messages=[Message("reset-ago", b"x")] * 3)
    await placed(gateway, "g-ago", topic, {0: 3})
    page = (await (await log_in(Role.OPERATOR)).get(f"/group/g-ago/reset?topic={topic}&to=time&at=2h")).content.decode()
    assert cells(page)[1:5] == ["3", "0", "0", "3"]


async def test_names_that_clients_made_up_are_text(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("group-nasty", queues=1)
    nasty = "<img src=x onerror=alert(1)>"
    async with consuming(gateway, "g-nasty", topic, "a", instance_name=nasty):
        await group_that(gateway, "g-nasty", lambda seen: seen.clients)
        page = (await (await log_in("reader")).get("/group/g-nasty")).content.decode()
    assert nasty not in page and "&lt;img src=x" in page


# ---- the list, live


async def test_the_list_is_sorted_by_the_address_and_asks_again_for_itself_alone(
    log_in: Client, gateway: Gateway, make_topic: Topic
) -> None:
    topic = await make_topic("list-sort", queues=1, messages=[Message("list-sort", b"x")] * 9)
    for group, offset in (("g-sort-near", 8), ("g-sort-far", 1)):
        await placed(gateway, group, topic, {0: offset})
    client = await log_in("reader")

    async def names(query: str, **headers: str) -> list[str]:
        page = (await client.get(f"/groups?q=g-sort&{query}", headers=headers)).content.decode()
        assert page.lstrip().startswith("<div" if headers else "<!doctype"), page[:40]
        return re.findall(r'<a href="/group/(g-sort-\w+)"', page)

    assert await names("sort=lag&down=1") == ["g-sort-far", "g-sort-near"]
    assert await names("sort=lag") == await names("sort=name&down=1") == ["g-sort-near", "g-sort-far"]
    assert sorted(await names("sort=nonsense")) == ["g-sort-far", "g-sort-near"]
    assert await names("sort=lag", hx_request="true", hx_target="group-list") == ["g-sort-near", "g-sort-far"]


async def test_two_looks_tell_rates_and_direction_on_the_page_and_over_rest(
    log_in: Client, gateway: Gateway, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trend, "HISTORY_EACH_S", 0.0)
    monkeypatch.setattr(books, "LOOK_EACH_S", 0.0)
    topic = await make_topic("list-rates", queues=1)
    await placed(gateway, "g-rates", topic, {0: 0})
    await group_book.listing(gateway)
    await group_book.rows(gateway, ["g-rates"])
    for _ in range(9):
        await gateway.messages.send(Message(topic, b"x"))

    async def is_seen_again() -> bool:
        await group_book.look_round(gateway)
        seen = group_book.known("g-rates")
        return seen is not None and seen.lag == 9

    await until(is_seen_again)
    told = cells((await (await log_in("reader")).get("/groups?q=g-rates")).content.decode())
    assert (told[1], told[3]) == ("no members", "9") and told[2].startswith("Lag growing: from 0 to 9")
    assert told[2].endswith("↗")
    api = await api_for(await User.objects.aget(role="admin"), "read")
    status, listed = await api.call("get", "/groups?q=g-rates&sort=lag&down=true")
    [group] = listed["items"]
    assert (status, group["state"], group["direction"], group["retries"]) == (200, "no members", "growing", 0)
    assert group["in_rate"] is not None and group["out_rate"] == 0 and group["dead_letters"] is None
    assert group["lag_history"][0]["lag"] == 0 and group["seconds_to_zero"] is None
    assert (await api.call("get", "/groups?sort=sideways"))[0] == 422


# ---- why it is behind


async def test_what_a_member_has_in_its_hands_is_shown_and_linked(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_checks, "HELD_LONG_MS", 0)
    await group_book.listing(gateway)  # a group that is newer than the list has a page all the same
    topic = await make_topic("group-held", queues=1, messages=[Message("group-held", b"x")] * 3)
    go_on = asyncio.Event()

    async def wait(messages: list[MessageExt]) -> ConsumeResult:
        await go_on.wait()
        return ConsumeResult.SUCCESS

    consumer = PushConsumer(cluster.namesrv_address, group="g-held", listener=wait)
    consumer.subscribe(topic)
    async with consumer:
        try:
            await group_that(gateway, "g-held", lambda seen: any(load.oldest for load in loads_of(seen)))
            client = await log_in("reader")
            page = (await client.get("/group/g-held")).content.decode()
            again = await client.get("/group/g-held", headers={"hx-request": "true", "hx-target": "group-now"})
            api = await api_for(await User.objects.aget(role="admin"), "read")
            status, told = await api.call("get", "/groups/g-held")
            member_id = told["members"][0]["client_id"]
            stacks = (await client.get("/group/g-held/stacks", {"client": member_id})).content.decode()
            stacks_told = await api.call("get", f"/groups/g-held/stacks?{urlencode({'client_id': member_id})}")
            stranger = await client.get("/group/g-held/stacks", {"client": "no-such"})
        finally:
            go_on.set()
    assert "Why is it behind?" in page and "A message has been in progress for" in page
    fragment = again.content.decode()
    assert fragment.lstrip().startswith('<div id="group-now"') and f'data-cell="{member_id} held"' in fragment
    assert f'data-cell="{topic} {cluster.broker.config.broker_name} 0 lag"' in fragment
    assert "listener call" in stacks and "go_on.wait()" in stacks and "gantry admin consumers g-held" in stacks
    assert stacks_told[0] == 200 and "go_on.wait()" in stacks_told[1]["stacks"]
    assert stranger.status_code == 404
    [member] = told["members"]
    held = member["oldest_held"]
    assert (status, held["topic"], held["queue_id"]) == (200, topic, 0)
    assert f'href="/topic/{topic}/messages/{cluster.broker.config.broker_name}.0.' in page
    assert member["queues"] >= 1 and member["busy"] >= 1 and told["trend"]["seen_at"]
    assert any(check["title"].startswith("A message has been in progress") for check in told["checks"])


async def test_a_group_that_pops_shows_what_it_has_in_flight(
    log_in: Client, gateway: Gateway, cluster: ServingCluster, make_topic: Topic
) -> None:
    topic = await make_topic("popped", queues=1, messages=[Message("popped", b"x")] * 3)
    await gateway.calls.call(lambda admin: admin.groups.create(SubscriptionGroupConfig("poppers")))
    client = await log_in("operator")
    assert "In flight" not in (await client.get("/group/poppers")).content.decode()
    async with popping(cluster.broker_address, group="poppers", topic=topic) as popper:
        first, second = await popper.pop(maxMsgNums=2, clientId="me@7")
        page = (await client.get("/group/poppers", headers={"HX-Target": "group-now"})).content.decode()
        assert "2 messages are delivered and not acknowledged" in page and "2 in flight" in page
        assert f'href="/topic/{topic}/messages/broker-a.0.0"' in page and "me@7" in page
        assert await popper.ack(first) == 0
    detail = await gateway.groups.get("poppers")
    assert (detail.lag, detail.in_flight, detail.is_popping) == (2, 1, True)
    api = await api_for(await User.objects.aget(username="operator"), "read")
    status, answer = await api.call("get", "/groups/poppers/leases")
    assert status == 200 and (answer["total"], answer["modes"]) == (1, {topic: "POP"})
    [lease] = answer["items"]
    assert (lease["offset"], lease["client_id"], lease["deliveries"]) == (1, "me@7", 1)
    assert 0 < seconds(lease["due_at"]) - seconds(lease["delivered_at"]) <= 60
    async with popping(cluster.broker_address, group="poppers", topic=topic) as popper:
        assert await popper.ack(second) == 0  # or a retry topic comes amid another test


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
