"""Overview, topics, messages and tokens as a person meets them, against a real broker."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone

from dashboard.alerts.watch import AlertWatch
from dashboard.audit.chain import Change, append
from dashboard.cluster.gateway import Gateway
from dashboard.history.block_builder import HistoryBook
from dashboard.live.sampler import Sampler
from dashboard.models.alerts import AlertMute, AlertRow, AlertRule
from dashboard.models.audit import Way
from dashboard.models.history import HistoryBlock, HistoryMark
from dashboard.models.management import ApiToken, Role, User
from dashboard.overview.sparks import sparks
from dashboard.overview.views import lately
from dashboard.status.board import board
from dashboard.status.check import Check, Level
from dashboard.status.metrics import overview_metrics
from dashboard.status.verdict import judge
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic
from tests.harness import ServingCluster

HTMX = {"hx-request": "true"}


async def page_of(client, address: str, **options) -> str:  # type: ignore[no-untyped-def]
    response = await client.get(address, **options)
    assert response.status_code == 200, (address, response.status_code)
    return response.content.decode()


@pytest.mark.parametrize(("typed", "meant"), [("/topics/?q=a", "/topics?q=a"), ("/reports", "/reports/")])
async def test_a_slash_more_or_less_finds_the_page_all_the_same(log_in: Client, typed: str, meant: str) -> None:
    response = await (await log_in()).get(typed)
    assert (response.status_code, response.headers["Location"]) == (301, meant)


@pytest.mark.parametrize("address", ["/nowhere/", "/nowhere"])
async def test_an_address_that_is_none_stays_not_found(log_in: Client, address: str) -> None:
    response = await (await log_in()).get(address)
    assert response.status_code == 404
    assert 'aria-label="Main"' in response.content.decode(), "who is logged in keeps the navigation"
    assert 'aria-label="Main"' not in (await AsyncClient().get(address)).content.decode()


# ---- overview


async def test_the_overview_says_one_sentence_and_shows_the_figures(
    log_in: Client, gateway: Gateway, make_topic: Topic, cluster: ServingCluster
) -> None:
    await make_topic("overview-demo", messages=[Message("overview-demo", b"x")])
    sampler = Sampler(gateway)
    await sampler.sample()
    await sampler.sample()
    page = await page_of(await log_in("reader"), "/")
    [sentence] = re.findall(r"<h1[^>]*>([^<]*)</h1>", page)
    assert unescape(sentence) == judge(board.snapshot).sentence
    assert "1 of 1" in page and cluster.broker.config.broker_name in page
    for figure in ("in", "out", "lag", "dead", "stored", "disk"):
        assert f'data-live="cluster.{figure}"' in page, figure
    assert ".lane." not in page, "lanes are on the broker's page"


async def test_the_worst_problem_is_shown_in_full_and_others_are_lines_to_open(
    log_in: Client, gateway: Gateway
) -> None:
    snapshot = await Sampler(gateway).sample()
    checks = (Check(Level.BAD, "worst", "seen", "repair"), Check(Level.WARN, "mild", "noticed", "look"))
    board.snapshot = replace(snapshot, problems=checks)
    first, second = (await page_of(await log_in("reader"), "/")).split("<article")[1:3]
    assert "worst" in first and "repair" in first and "<details>" not in first
    assert "mild" in second and '<p class="muted">look</p></details>' in second


async def test_the_overview_tells_what_happened_lately(log_in: Client, gateway: Gateway) -> None:
    await Sampler(gateway).sample()
    client = await log_in("admin")
    empty = await page_of(client, "/")
    assert "Nothing within a day" in empty
    now = timezone.now()
    await AlertRow.objects.acreate(subject="x", level=2, title="The disk is full", text="", begun_at=now)
    await AlertRow.objects.acreate(subject="y", level=1, title="older", text="", begun_at=now - timedelta(days=2))
    page = await page_of(client, "/")
    lately = page.partition('class="card lately"')[2].partition("</section>")[0]
    assert "The disk is full" in lately and "older" not in lately
    newest = await AlertRow.objects.order_by("-begun_at").afirst()
    assert newest is not None and f'<a class="name" href="/alerts/{newest.pk}"' in lately


@pytest.mark.django_db(transaction=True)
async def test_restarts_that_are_alike_are_one_line_lately() -> None:
    now = 1_800_000_000.0
    for ago_s in range(10):
        at = datetime.fromtimestamp(now - 60 - ago_s, UTC)
        await HistoryMark.objects.acreate(at=at, text="dashboard started")
    await HistoryMark.objects.acreate(at=datetime.fromtimestamp(now - 3600, UTC), text="broker-a started")
    told = await lately(None, now)
    assert [(one.text, one.at_ms) for one in told] == [
        ("dashboard started × 10", int(now - 60) * 1000), ("broker-a started", int(now - 3600) * 1000)
    ]  # fmt: skip


async def test_the_overview_counts_the_alerts_that_are_muted(log_in: Client, gateway: Gateway) -> None:
    watch, sampler = AlertWatch(board), Sampler(gateway)
    shapes: set[str] = set()
    client, now = await log_in("reader"), timezone.now()

    async def live() -> str:
        await watch.look()
        snapshot = await sampler.sample()
        shapes.add(overview_metrics(snapshot).shape)
        return await page_of(client, "/")

    rule = await AlertRule.objects.acreate(
        name="late", kind="group-behind", threshold=1, clear=1, for_s=0, clear_s=60, level=1
    )
    await AlertMute.objects.acreate(
        reason="r", who="ada", pattern="app-*", begun_at=now, until=now + timedelta(hours=2)
    )
    await AlertRow.objects.acreate(subject="other", level=1, title="t", text="", begun_at=now, rule=rule)
    assert "alert muted" not in await live()
    for subject, shown in (("app-a", "1 alert muted until"), ("app-b", "2 alerts muted, the first until")):
        await AlertRow.objects.acreate(subject=subject, level=1, title="t", text="", begun_at=now, rule=rule)
        assert f"{shown} <time" in await live()
    assert len(shapes) == 3, "an open page asks for the new line"


async def test_lately_names_a_change_once_and_no_topic_of_the_system(log_in: Client, gateway: Gateway) -> None:
    await Sampler(gateway).sample()
    client = await log_in("admin")

    def write() -> None:
        append([
            Change(who="ada", way=Way.PAGE, address="", action="topic created", target="orders"),
            Change(who="", way=Way.REMOTING, address="", action="topic created or changed", target="orders"),
            Change(who="", way=Way.REMOTING, address="", action="topic created or changed", target="by-mqadmin"),
            Change(who="", way=Way.REMOTING, address="", action="topic created or changed", target="%RETRY%mails"),
            Change(who="", way=Way.REMOTING, address="", action="topic deleted", target="RMQ_SYS_TRACE_TOPIC"),
            Change(who="ada", way=Way.PAGE, address="", action="password changed", target="ada"),
        ])  # fmt: skip

    await sync_to_async(write)()
    page = await page_of(client, "/")
    lately = page.partition('class="card lately"')[2].partition("</section>")[0]
    told = [unescape(one) for one in re.findall(r'<a class="name"[^>]*>(.*?)</a>', lately)]
    assert set(re.findall(r'<a class="name" href="([^"]*)"', lately)) == {"/audit"}
    assert sorted(told) == ["password changed ada", "topic created or changed by-mqadmin", "topic created orders (ada)"]


async def test_a_tile_has_the_line_of_its_last_hour(log_in: Client, gateway: Gateway) -> None:
    now = 1_700_000_040.0
    assert (await sparks(now))["lag"].points == ""
    book = HistoryBook()
    for minute, lag in enumerate((5.0, 15.0, 10.0)):
        book.add({"lag": lag}, now - 180 + 60 * minute)
    book.flush()
    for key, values in book.due(100):
        await HistoryBlock.objects.acreate(series=key.series, step_s=key.step_s, start=key.start, values=values)
    points = [tuple(map(float, point.split(","))) for point in (await sparks(now))["lag"].points.split()]
    assert [y for _, y in points] == [22.0, 2.0, 12.0], "the least at the bottom, the most at the top"


async def test_the_brokers_page_has_every_broker_and_process(log_in: Client, gateway: Gateway) -> None:
    await Sampler(gateway).sample()
    page = await page_of(await log_in("reader"), "/brokers")
    assert board.snapshot is not None
    [broker] = board.snapshot.brokers
    assert f'href="/broker/{broker.name}"' in page and "accepts messages" in page
    assert "process.web.state" in page


async def test_before_the_first_look_the_overview_shows_no_zero(log_in: Client, gateway: Gateway) -> None:
    page = (await (await log_in()).get("/")).content.decode()
    tiles = re.findall(r'data-live="cluster\.[^>]*>([^<]*)<', page)
    assert tiles and set(tiles) == {"—"}


async def test_the_overview_of_a_cluster_that_is_away_is_a_page_and_says_so(log_in: Client) -> None:
    sampler = Sampler(Gateway("127.0.0.1:9"))
    await sampler.sample()
    page = await page_of(await log_in(), "/")
    assert "The name server does not answer" in page
    assert ">0<" not in "".join(re.findall(r'data-live="cluster\.(?:in|out|stored)"[^>]*>[^<]*<', page))
    assert board.snapshot is not None and board.snapshot.namesrv_why


async def test_the_fragment_has_the_figures_without_the_frame(log_in: Client, gateway: Gateway) -> None:
    await Sampler(gateway).sample()
    page = await page_of(await log_in(), "/overview/live", headers=HTMX)
    assert "cluster.in" in page and "<html" not in page


@pytest.mark.parametrize(
    "address", ["/", "/topics", "/overview/live", "/topic/x/queues", "/topic/x/groups", "/topic/x"]
)
async def test_pages_that_only_show_refuse_to_be_posted_to(address: str, log_in: Client, gateway: Gateway) -> None:
    assert (await (await log_in()).post(address)).status_code == 405


# ---- the list of topics


async def test_the_list_hides_what_is_the_clusters_own_until_asked(log_in: Client, make_topic: Topic) -> None:
    await make_topic("list-plain")
    client = await log_in("reader")
    page = await page_of(client, "/topics")
    assert "list-plain" in page and "TBW102" not in page
    assert "TBW102" in await page_of(client, "/topics?show=system")


async def test_filter_and_sort_are_in_the_address(log_in: Client, make_topic: Topic) -> None:
    for name in ("sort-b", "sort-a"):
        await make_topic(name, queues=2 if name == "sort-b" else 8)
    client = await log_in("reader")

    async def names(query: str) -> list[str]:
        return re.findall(r'<a href="/topic/(sort-\w)"', await page_of(client, f"/topics?q=SORT-&{query}"))

    assert await names("") == ["sort-a", "sort-b"]
    assert await names("sort=name&down=1") == ["sort-b", "sort-a"]
    assert await names("sort=queues&down=1") == ["sort-a", "sort-b"]
    assert await names("sort=stored") == ["sort-a", "sort-b"]
    assert await names("sort=nonsense&page=99999") == ["sort-a", "sort-b"]
    assert "Nothing matches" in await page_of(client, "/topics?q=there-is-none")


async def test_the_filter_fetches_only_the_list(log_in: Client, make_topic: Topic) -> None:
    page = await page_of(await log_in(), "/topics?q=a", headers=HTMX | {"hx-target": "topic-list"})
    assert page.lstrip().startswith('<div id="topic-list"')


# ---- create, change, delete


async def test_a_topic_is_created_by_its_form(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("operator")
    form = {"name": "made-by-form", "queues": "3", "perm": "read-write"}
    answer = await client.post("/topics/create", form)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/topic/made-by-form")
    detail = await gateway.topics.get("made-by-form")
    assert (detail.first_settings.write_queues, detail.first_settings.perm) == (3, 6)
    assert "Topic made-by-form created." in await page_of(client, "/topic/made-by-form")
    twice = await client.post("/topics/create", form, headers=HTMX)
    assert twice.status_code == 422
    assert "exists already" in twice.content.decode()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "../../etc"}, "Only letters"),
        ({"name": "a" * 128}, "at most 127"),
        ({"name": "%RETRY%group"}, "Brokers create retry"),
        ({"name": "SCHEDULE_TOPIC_XXXX"}, "belongs to the brokers"),
        ({"name": "DefaultCluster"}, "name of the cluster itself"),
        ({"name": ""}, "required"),
        ({"queues": "0"}, "greater than or equal to 1"),
        ({"queues": "100000"}, "less than or equal to 256"),
        ({"perm": "root"}, "Select a valid choice"),
    ],
)
async def test_a_form_that_is_wrong_says_what(
    change: dict[str, str], complaint: str, log_in: Client, gateway: Gateway
) -> None:
    form = {"name": "wrong-form", "queues": "3", "perm": "read-write"} | change
    answer = await (await log_in("operator")).post("/topics/create", form, headers=HTMX)
    assert answer.status_code == 422
    assert complaint in answer.content.decode()
    assert "wrong-form" not in {row.name for row in (await gateway.topics.list()).rows}


async def test_settings_change_on_the_broker(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    await make_topic("to-change")
    client = await log_in("operator")
    assert 'value="4"' in await page_of(client, "/topic/to-change/settings")
    answer = await client.post("/topic/to-change/settings", {"queues": "6", "perm": "read"})
    assert answer.status_code == 302
    now = (await gateway.topics.get("to-change")).first_settings
    assert (now.read_queues, now.write_queues, now.perm) == (6, 6, 4)


async def test_a_topic_goes_only_after_its_name_was_typed(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    await make_topic("to-delete", messages=[Message("to-delete", b"1"), Message("to-delete", b"2")])
    client = await log_in("operator")
    assert "2 stored messages" in await page_of(client, "/topic/to-delete/delete")
    assert (await client.post("/topic/to-delete/delete", {"typed_name": "to-delet"})).status_code == 422
    assert "to-delete" in {row.name for row in (await gateway.topics.list()).rows}
    assert (await client.post("/topic/to-delete/delete", {"typed_name": "to-delete"})).status_code == 302
    assert "to-delete" not in {row.name for row in (await gateway.topics.list()).rows}
    assert (await client.get("/topic/to-delete")).status_code == 404


async def test_the_clusters_own_topics_can_not_be_deleted(log_in: Client, gateway: Gateway) -> None:
    answer = await (await log_in()).post("/topic/TBW102/delete", {"typed_name": "TBW102"})
    assert answer.status_code == 409
    assert "TBW102" in {row.name for row in (await gateway.topics.list()).rows}


async def test_queues_and_groups_of_a_topic(log_in: Client, make_topic: Topic) -> None:
    await make_topic("with-queues", messages=[Message("with-queues", b"1")])
    client = await log_in("reader")
    page = await page_of(client, "/topic/with-queues/queues")
    assert page.count("/topic/with-queues?queue=") == 4
    assert "No group has read this topic" in await page_of(client, "/topic/with-queues/groups")


# ---- messages


async def test_messages_are_shown_newest_first_over_all_queues(log_in: Client, make_topic: Topic) -> None:
    sent = [Message("newest", f"body-{number}".encode(), keys=f"k{number}") for number in range(30)]
    await make_topic("newest", messages=sent)
    client = await log_in("reader")
    first = await page_of(client, "/topic/newest")
    assert re.findall(r"<code>body-(\d+)</code>", first) == [str(number) for number in range(29, 4, -1)]
    [older] = re.findall(r'href="(\?older=[^"]+)">Older', first)
    second = await page_of(client, "/topic/newest" + older.replace("&amp;", "&"))
    assert re.findall(r"<code>body-(\d+)</code>", second) == ["4", "3", "2", "1", "0"]
    assert ">Older<" not in second


async def test_one_message_opens_as_json_text_and_hex(log_in: Client, make_topic: Topic) -> None:
    body = b'{"total": 12.5, "name": "Zo\xc3\xab"}'
    await make_topic("opens", queues=1, messages=[Message("opens", body, tags="paid", properties={"region": "eu"})])
    client = await log_in("reader")
    [place] = re.findall(r'data-place="([^"]+)"', await page_of(client, "/topic/opens"))
    fragment = await page_of(client, f"/topic/opens/messages/{place}", headers=HTMX)
    assert fragment.lstrip().startswith('<tr class="opened"')
    assert "&quot;total&quot;: 12.5" in fragment and "region" in fragment and "paid" in fragment
    assert "{&quot;total&quot;: 12.5, " in await page_of(client, f"/topic/opens/messages/{place}?as=text", headers=HTMX)
    assert "7b 22 74 6f" in await page_of(client, f"/topic/opens/messages/{place}?as=hex", headers=HTMX)
    assert "<html" in await page_of(client, f"/topic/opens/messages/{place}")
    assert 'class="opened"' in await page_of(client, f"/topic/opens?open={place}")
    for wrong in ("broker-a.0.999", "nobody.0.0", "broker-a.x.0", "broker-a", "broker-a.77.0"):
        assert (await client.get(f"/topic/opens/messages/{wrong}")).status_code == 404, wrong


async def test_a_test_message_says_where_it_went(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    await make_topic("to-send")
    client = await log_in("operator")
    form = {"tag": "paid", "key": "order-1", "properties": "region=eu\r\nshop = 7 ", "body": "first\r\nsecond"}
    answer = await client.post("/topic/to-send/send", form, headers=HTMX)
    assert answer.status_code == 200 and "Stored in" in answer.content.decode()
    page = await gateway.messages.newest(await gateway.topics.get("to-send"), limit=5)
    [message] = page.messages
    assert (message.body, message.tags, message.keys) == (b"first\nsecond", "paid", ["order-1"])
    assert (message.properties["region"], message.properties["shop"]) == ("eu", "7")
    assert (await client.post("/topic/to-send/send", form)).status_code == 302
    assert (await client.get("/topic/to-send/send")).status_code == 405


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"properties": "no equals sign"}, "is not name=value"),
        ({"properties": "KEYS=x"}, "property of the protocol"),
        ({"properties": "a=\x01b"}, "Control characters"),
        ({"tag": "a || b"}, "can&#x27;t be part of a tag"),
    ],
)
async def test_a_test_message_that_is_wrong_says_what(
    change: dict[str, str], complaint: str, log_in: Client, make_topic: Topic, gateway: Gateway
) -> None:
    name = "wrong-send-" + complaint[:2].strip().lower()
    await make_topic(name)
    answer = await (await log_in("operator")).post(f"/topic/{name}/send", {"body": "x"} | change, headers=HTMX)
    assert answer.status_code == 422 and complaint in answer.content.decode()
    assert (await gateway.topics.get(name)).put_total == 0


async def test_an_empty_topic_teaches_with_the_real_address(log_in: Client, make_topic: Topic) -> None:
    await make_topic("empty-topic")
    page = await page_of(await log_in("reader"), "/topic/empty-topic")
    assert "No messages yet" in page and 'Message("empty-topic"' in page


async def test_tabs_that_ask_again_share_one_look_at_the_list(
    log_in: Client, gateway: Gateway, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_topic("shared-look", queues=1)
    clients = [await log_in("reader"), await log_in("operator")]
    monkeypatch.setattr(gateway.calls, "clock", lambda: 5000.0)
    looks, ask = [], gateway.calls.ask_brokers

    async def counted(*args: Any, **options: Any) -> Any:
        looks.append(args)
        return await ask(*args, **options)

    monkeypatch.setattr(gateway.calls, "ask_brokers", counted)
    part = {"headers": {"hx-request": "true", "hx-target": "topic-list"}}
    pages = {await page_of(client, "/topics?q=shared-look", **part) for client in clients * 4}
    assert len(pages) == 1 and "shared-look" in pages.pop()
    assert len(looks) == 2, "the topics once, and the figures of the one that is shown"
    await make_topic("shared-look-2", queues=1)
    assert "shared-look-2" in await page_of(clients[0], "/topics?q=shared-look", **part), "a change shows at once"
    monkeypatch.setattr(gateway.calls, "clock", lambda: 5002.0)
    await page_of(clients[0], "/topics?q=shared-look", **part)
    assert len(looks) > 4


# ---- API tokens


async def test_a_token_is_shown_once_and_kept_as_a_hash(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("operator")
    answer = await client.post("/tokens", {"name": "CI", "scope": "read", "life_days": "30"})
    assert answer.status_code == 302, "a reload of what follows makes no other token"
    stranger = await page_of(await log_in("admin"), answer.headers["Location"])
    [secret] = set(re.findall(r"gmq_[\w-]{43}", await page_of(client, answer.headers["Location"])))
    assert secret not in await page_of(client, answer.headers["Location"]) and secret not in stranger
    token = await ApiToken.objects.aget()
    assert secret not in (token.token_hash, token.prefix) and secret.startswith(token.prefix)
    assert secret not in await page_of(client, "/tokens")
    assert (await client.get("/api/v1/topics", headers={"authorization": f"Bearer {secret}"})).status_code == 200
    assert "it was last used" in await page_of(client, f"/tokens/{token.pk}/revoke")
    assert (await client.get("/api/v1/topics", headers={"authorization": f"Bearer {secret}"})).status_code == 200
    assert (await client.post(f"/tokens/{token.pk}/revoke")).status_code == 302
    assert (await client.get("/api/v1/topics", headers={"authorization": f"Bearer {secret}"})).status_code == 401


async def test_nobody_revokes_anothers_token(log_in: Client) -> None:
    owner, other = await log_in(Role.OPERATOR), await log_in(Role.ADMIN)
    await owner.post("/tokens", {"name": "mine", "scope": "read", "life_days": "7"})
    token = await ApiToken.objects.aget()
    await other.post(f"/tokens/{token.pk}/revoke")
    assert (await ApiToken.objects.aget()).revoked_at is None
    assert "mine" not in await page_of(other, "/tokens")


async def test_a_token_without_an_end_can_not_be_made(log_in: Client) -> None:
    answer = await (await log_in()).post("/tokens", {"name": "x", "scope": "read", "life_days": "100000"})
    assert answer.status_code == 422


# ---- the theme


async def test_the_theme_is_kept_in_a_cookie(log_in: Client) -> None:
    client = await log_in("reader")
    answer = await client.post("/preferences/theme", {"theme": "dark", "back": "/tokens"})
    assert answer.headers["Location"] == "/tokens"
    assert 'data-theme="dark"' in await page_of(client, "/tokens")
    assert (await client.post("/preferences/theme", {"theme": "x", "back": "//evil"})).headers["Location"] == "/"


async def test_the_zone_of_times_is_kept_with_the_account(log_in: Client) -> None:
    client = await log_in("reader")
    assert 'data-times="both"' in await page_of(client, "/tokens")
    answer = await client.post("/preferences/times", {"times": "local", "back": "/topics"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/topics")
    assert 'data-times="local"' in await page_of(client, "/tokens")
    await client.post("/preferences/times", {"times": "moon"})
    assert [user.times async for user in User.objects.filter(role="reader")] == ["local"]
