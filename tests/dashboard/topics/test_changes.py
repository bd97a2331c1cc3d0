"""Many topics changed at once: by page and by REST, with each topic's result, roles, prefixes and the audit log."""

from __future__ import annotations

import asyncio
import html
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.utils import timezone

from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.gateway import Gateway, use_gateway
from dashboard.cluster.topic_requests import TopicCalls
from dashboard.cluster.values import TopicSettings, TopicSummary
from dashboard.limits.names import NameLimit, NameRefused, use
from dashboard.models.audit import AuditEntry, Result, Way
from dashboard.models.management import User
from dashboard.models.topic_changes import TopicChangeRun
from dashboard.topics.change_runs import ChangeRun, ChangeRuns, change_runs, found, newest, stop
from dashboard.topics.change_views import admin_lines
from dashboard.topics.changes import Asker, Dealt, TopicChange, difference_of
from gantrymq import MessageModel
from gantrymq.message.model import Message
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.groups.group_members import consuming, group_that
from tests.dashboard.silent_broker import NAME as SILENT
from tests.dashboard.silent_broker import silent_broker
from tests.harness import ServingCluster

ASKER = Asker("ada", Way.PAGE, "127.0.0.1", "")


async def ended(number: int, runs: ChangeRuns = change_runs) -> ChangeRun:
    await runs.ended(number)
    return await found(number)


@pytest.fixture
def ada(make_user: Callable[..., User]) -> User:
    """Who asks for the runs of these tests."""
    return make_user("operator", "ada")


async def test_a_page_previews_asks_and_shows_each_result(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    names = [await make_topic(f"bulk-{letter}") for letter in "ab"]
    client = await log_in("operator")
    page = (await client.get("/topics/change?all=1&q=bulk-")).content.decode()
    assert "Change 2 topics" in page and "bulk-a, bulk-b" in page
    form: dict[str, Any] = {"topic": names, "what": "perm", "perm": "read"}
    page = html.unescape((await client.post("/topics/change", form)).content.decode())
    assert 'for topic in bulk-a bulk-b; do gantry admin topics set "$topic" --perm r -n ' in page
    assert "/api/v1/topic-changes -H" in page and '"what": "perm"' in page
    assert '<td class="name">bulk-a, bulk-b</td>' in page and "<code>perm</code>: read-write → read<" in page
    answer = await client.post("/topics/change", form | {"typed_name": "3 topics"})
    assert answer.status_code == 422 and "Nothing was changed" in answer.content.decode()
    answer = await client.post("/topics/change", form | {"typed_name": "2 topics"})
    number = int(re.fullmatch(r"/topics/changes/(\d+)", answer.headers["Location"])[1])  # type: ignore[index]
    await ended(number)
    page = (await client.get(f"/topics/changes/{number}")).content.decode()
    assert "2 of 2 done" in page and "data-refresh=" not in page
    for name in names:
        assert (await gateway.topics.get(name)).first_settings.perm_text == "read only"
    written = [one async for one in AuditEntry.objects.filter(action="topic changed", target__in=names)]
    assert sorted(one.target for one in written) == names and {one.who for one in written} == {"operator"}


async def test_a_page_says_how_many_differences_there_are_when_it_shows_some(log_in: Client, make_topic: Topic) -> None:
    names = [await make_topic(f"bulk-each-{number}", queues=number) for number in range(1, 22)]
    form: dict[str, Any] = {"topic": names, "what": "queues", "read_queues": "30", "write_queues": "30"}
    page = (await (await log_in("operator")).post("/topics/change", form)).content.decode()
    assert page.count("<code>write_queues</code>") == 20 and "… (21)" in page


async def test_rest_deletes_many_and_tells_which_were_not(make_topic: Topic, gateway: Gateway, admin: User) -> None:
    names = [await make_topic(f"bulk-gone-{letter}") for letter in "ab"]
    api = await api_for(admin)
    status, started = await api.call("post", "/topic-changes", {"what": "delete", "topics": [*names, "bulk-nowhere"]})
    assert (status, started["state"]) == (202, "running")
    await ended(started["id"])
    _, run = await api.call("get", f"/topic-changes/{started['id']}")
    assert (run["state"], run["done"], run["failed"]) == ("done", 2, 1)
    assert run["topics"][0] == {
        "topic": "bulk-nowhere",
        "result": "failed",
        "detail": "There is no topic bulk-nowhere.",
    }
    left = {row.name for row in (await gateway.topics.list()).rows}
    assert not left & set(names)
    failed = await AuditEntry.objects.filter(target="bulk-nowhere").alatest("number")
    assert (failed.result, failed.action) == (Result.FAILED, "topic deleted")
    assert (await api.call("post", f"/topic-changes/{started['id']}/stop"))[0] == 409
    assert (await api.call("get", "/topic-changes/999999"))[0] == 404
    assert (await api.call("post", "/topic-changes", {"what": "queues", "topics": ["x"]}))[0] == 422


async def test_queues_and_retention_are_set_and_groups_are_moved(
    make_topic: Topic, gateway: Gateway, ada: User
) -> None:
    topic = await make_topic("bulk-shaped", queues=4)
    for number in range(6):
        await gateway.messages.send(Message(topic, b"%d" % number))
    admin = await gateway.calls.admin()
    await admin.groups.create(SubscriptionGroupConfig("bulk-group"))
    await admin.offsets.reset("bulk-group", topic, 0, await admin.offsets.plan_reset("bulk-group", topic, 0))
    runs = ChangeRuns()
    for wanted in (
        TopicChange("retention", retention_ms=60_000, retention_messages=5),
        TopicChange("reset-to-end"),
        TopicChange("queues", read_queues=4, write_queues=2),
    ):
        run = await ended((await runs.start(wanted, [topic], ASKER)).number, runs)
        assert (run.state, run.done) == ("done", 1), run.dealt
    assert [one.dealt[topic].told for one in await newest()] == ["", "offsets reset: bulk-group (6)", ""]
    now = (await gateway.topics.get(topic)).first_settings
    assert (now.read_queues, now.write_queues, now.retention_ms, now.retention_messages) == (4, 2, 60_000, 5)
    groups, _ = await gateway.groups.of_topic(await gateway.topics.get(topic))
    assert [(group.name, group.lag) for group in groups] == [("bulk-group", 0)]


async def test_rest_says_before_what_a_change_would_change(make_topic: Topic, gateway: Gateway, ada: User) -> None:
    await make_topic("bulk-as-it-is", queues=4)
    await make_topic("bulk-smaller", queues=2)
    names = ["bulk-smaller", "bulk-as-it-is", "bulk-nowhere"]
    api = await api_for(ada)
    wanted = {"what": "queues", "read_queues": 4, "write_queues": 4, "topics": names}
    status, told = await api.call("post", "/topic-changes/preview", wanted)
    queues = {"read_queues": 2, "write_queues": 2}
    assert (status, told["items"]) == (200, [
        {"topic": "bulk-smaller", "before": queues, "after": dict.fromkeys(queues, 4), "problem": ""},
        {"topic": "bulk-as-it-is", "before": {}, "after": {}, "problem": ""},
        {"topic": "bulk-nowhere", "before": {}, "after": {}, "problem": "There is no topic bulk-nowhere."},
    ])  # fmt: skip
    assert (await gateway.topics.get("bulk-smaller")).first_settings.write_queues == 2, "nothing is done"


async def test_rest_says_before_what_a_run_would_refuse(make_topic: Topic, gateway: Gateway, ada: User) -> None:
    topic = await make_topic("bulk-own")
    api = await api_for(ada)
    own = "TBW102 is a topic of the cluster itself."
    for wanted, problem in (({"what": "delete"}, own), ({"what": "perm", "perm": "read"}, own),
                            ({"what": "reset-to-end"}, "")):  # fmt: skip
        _, told = await api.call("post", "/topic-changes/preview", wanted | {"topics": ["TBW102", topic]})
        assert [one["problem"] for one in told["items"]] == [problem, ""]
    ran = await ended((await api.call("post", "/topic-changes", {"what": "delete", "topics": ["TBW102"]}))[1]["id"])
    assert ran.dealt["TBW102"].told == own, "the run says the same"


async def test_rest_says_which_brokers_a_preview_could_not_ask(
    make_topic: Topic, gateway: Gateway, cluster: ServingCluster, ada: User
) -> None:
    topic = await make_topic("bulk-half", queues=2)
    api, wanted = await api_for(ada), {"what": "queues", "read_queues": 4, "write_queues": 4}
    async with silent_broker(cluster):
        use_gateway(late := Gateway(cluster.namesrv_address))
        status, told = await api.call("post", "/topic-changes/preview", wanted | {"topics": [topic, "bulk-elsewhere"]})
        await late.close()
    assert (status, told["problems"]) == (200, [f"{SILENT}: no answer in time"])
    known, unknown = told["items"]
    assert known["problem"] == "" and known["before"] == {"read_queues": 2, "write_queues": 2}
    assert "it was deleted in between, or not all brokers answer" in unknown["problem"], "it may be there"


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [
        (TopicChange("perm", perm=4), {"perm": None}, {"perm": "read"}),
        (TopicChange("queues", read_queues=8, write_queues=4), {"read_queues": 4}, {"read_queues": 8}),
        (TopicChange("retention", retention_messages=5), {"retention_messages": 0}, {"retention_messages": 5}),
        (TopicChange("delete"), {}, {}),
    ],
)
def test_a_preview_has_what_differs_and_says_where_brokers_do(
    wanted: TopicChange, before: dict[str, Any], after: dict[str, Any]
) -> None:
    settings = tuple(TopicSettings(f"b{perm}", 4, 4, perm, False) for perm in (6, 4))
    found = difference_of(wanted, TopicSummary("t", "normal", settings))
    assert (found.before, found.after) == (before, after)


class Held:
    """Deleting a topic waits in here until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on, self.deleted = asyncio.Event(), asyncio.Event(), list[str]()

        async def held(_: TopicCalls, name: str) -> None:
            self.begun.set()
            await self.go_on.wait()
            self.deleted.append(name)

        monkeypatch.setattr(TopicCalls, "delete", held)


async def test_a_stopped_run_leaves_the_rest_alone(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, ada: User
) -> None:
    held, runs = Held(monkeypatch), ChangeRuns()
    begun = await runs.start(TopicChange("delete"), [f"t{number}" for number in range(20)], ASKER)
    await held.begun.wait()
    other = await runs.start(TopicChange("delete"), ["u"], ASKER)
    with pytest.raises(NotAllowed, match="are running already"):
        await runs.start(TopicChange("delete"), ["v"], ASKER)
    await stop(begun.number, "bea")
    held.go_on.set()
    run, _ = [await ended(one.number, runs) for one in (begun, other)]
    assert (run.state, run.stopped_by) == ("stopped", "bea")
    assert 0 < len(run.dealt) < 20
    assert [dealt for _, dealt in run.rows[len(run.dealt) :]] == [None] * (20 - len(run.dealt))


async def test_a_run_that_a_restart_broke_off_goes_on_and_is_audited_once(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, ada: User
) -> None:
    names = [f"t{number}" for number in range(12)]
    first, second, held = ChangeRuns(), ChangeRuns(), Held(monkeypatch)
    started = await first.start(TopicChange("delete"), names, ASKER)
    await held.begun.wait()
    await first.close()  # as when its process ends: nothing after the deletion is written down
    assert (await found(started.number)).is_running and held.deleted == []
    held.go_on.set()
    await second.look()
    run = await ended(started.number, second)
    assert (run.state, run.done, sorted(held.deleted)) == ("done", 12, sorted(names))
    assert run.resumed_at is not None
    written = AuditEntry.objects.filter(action="topic deleted", target__in=names)
    assert sorted([entry.target async for entry in written]) == sorted(names)


async def test_what_must_not_be_done_twice_is_told_as_not_known(make_topic: Topic, ada: User) -> None:
    topic, runs = await make_topic("bulk-broken-off"), ChangeRuns()
    row = await TopicChangeRun.objects.acreate(
        wanted={"what": "reset-to-end"}, topics=[topic], who="ada", way=Way.PAGE, started_at=timezone.now()
    )
    await row.results.acreate(topic=topic, state="begun")
    await runs.look()
    run = await ended(row.pk, runs)
    assert (run.state, run.failed) == ("done", 1) and run.dealt[topic].told.startswith("Unknown: the dashboard ended")


async def test_a_run_of_before_is_told_in_the_words_of_now(gateway: Gateway, ada: User) -> None:
    stands = {"topics": ["t"], "who": "ada", "way": Way.PAGE, "started_at": timezone.now()}
    for what in ("keep", "skip", "delete"):
        await TopicChangeRun.objects.acreate(wanted={"what": what}, state="done", **stands)
    migration = importlib.import_module("dashboard.migrations.0002_tables")
    await sync_to_async(migration.say_in_the_words_of_now)(apps, None)
    status, told = await (await api_for(ada)).call("get", "/topic-changes")
    assert (status, [run["what"] for run in told["items"]]) == (200, ["delete", "reset-to-end", "retention"])


async def test_a_run_of_an_account_that_lost_its_rights_does_nothing_more(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, make_user: Callable[..., User]
) -> None:
    await sync_to_async(make_user)("reader", "ada")
    held, runs = Held(monkeypatch), ChangeRuns()
    run = await ended((await runs.start(TopicChange("delete"), ["t"], ASKER)).number, runs)
    assert (run.state, run.dealt, held.deleted) == ("failed", {}, []) and "can no longer change topics" in run.told


async def test_a_limited_account_changes_and_sees_its_own_names_only(gateway: Gateway, ada: User) -> None:
    runs = ChangeRuns()
    foreign = await ended((await runs.start(TopicChange("delete"), ["theirs-x"], ASKER)).number, runs)
    use(NameLimit(("mine-",)))
    try:
        with pytest.raises(NameRefused):
            await runs.start(TopicChange("delete"), ["mine-a", "theirs-b"], ASKER)
        assert await newest() == []
        with pytest.raises(Exception, match="There is no run"):
            await found(foreign.number)
    finally:
        use(NameLimit())


def test_lines_for_a_shell_quote_names_and_move_group_by_group() -> None:
    [line] = admin_lines("ns:9876", TopicChange("retention", retention_ms=60_000), ["a", "%RETRY%g"], {})
    assert line == (
        'for topic in a %RETRY%g; do gantry admin topics set "$topic" --attribute=retention.ms=60000 '
        "--attribute=-retention.messages -n ns:9876; done"
    )
    assert admin_lines("ns:9876", TopicChange("reset-to-end"), ["a", "b"], {"g": ["a", "b"]}) == [
        "gantry admin reset g a b --to end --yes -n ns:9876"
    ]


async def test_groups_that_broadcast_are_left_out_of_a_reset(
    make_topic: Topic, gateway: Gateway, ada: User, tmp_path: Path
) -> None:
    """Each member keeps its own offsets: there is nothing to reset, so that one such group fails no topic."""
    topic = await make_topic("bulk-cast", queues=1, messages=[Message("bulk-cast", b"x")] * 3)
    model = MessageModel.BROADCASTING
    async with consuming(gateway, "bulk-caster", topic, model=model, offsets_folder=tmp_path):
        await group_that(gateway, "bulk-caster", lambda group: group.is_broadcasting)
        admin = await gateway.calls.admin()
        await admin.groups.create(SubscriptionGroupConfig("bulk-sharer"))
        await admin.offsets.reset("bulk-sharer", topic, 0, await admin.offsets.plan_reset("bulk-sharer", topic, 0))
        runs = ChangeRuns()
        run = await ended((await runs.start(TopicChange("reset-to-end"), [topic], ASKER)).number, runs)
    assert run.dealt == {topic: Dealt(True, "offsets reset: bulk-sharer (3)")}
