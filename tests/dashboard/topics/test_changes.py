"""Many topics changed at once: by page and by REST, with each topic's result, roles, prefixes and the audit log."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dashboard.cluster.errors import NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.topics import TopicCalls
from dashboard.limits.names import NameLimit, NameRefused, use
from dashboard.models.audit import AuditEntry, Result, Way
from dashboard.models.management import User
from dashboard.topics.changes import Asker, ChangeRun, ChangeRuns, TopicChange, change_runs
from dashboard.topics.commands import admin_lines
from gantrymq.message.model import Message
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.dashboard.conftest import Client, api_for

Topic = Callable[..., Awaitable[str]]
ASKER = Asker("ada", Way.PAGE, "127.0.0.1", "")


async def ended(run: ChangeRun) -> ChangeRun:
    assert run.task is not None
    await run.task
    return run


async def test_a_page_previews_asks_for_the_number_and_shows_each_result(
    log_in: Client, make_topic: Topic, gateway: Gateway
) -> None:
    names = [await make_topic(f"bulk-{letter}") for letter in "ab"]
    client = await log_in("operator")
    page = (await client.get("/topics/change?all=1&q=bulk-")).content.decode()
    assert "Change 2 topics" in page and "bulk-a, bulk-b" in page
    form: dict[str, Any] = {"topic": names, "what": "access", "perm": "read"}
    page = html.unescape((await client.post("/topics/change", form)).content.decode())
    assert 'for topic in bulk-a bulk-b; do gantry admin topics set "$topic" --perm r -n ' in page
    assert "/api/v1/topic-changes -H" in page and '"what": "access"' in page
    answer = await client.post("/topics/change", form | {"typed_name": "3 topics"})
    assert answer.status_code == 422 and "Nothing was changed" in answer.content.decode()
    answer = await client.post("/topics/change", form | {"typed_name": "2 topics"})
    number = int(re.fullmatch(r"/topics/changes/(\d+)", answer.headers["Location"])[1])  # type: ignore[index]
    await ended(change_runs.found(number))
    page = (await client.get(f"/topics/changes/{number}")).content.decode()
    assert "2 of 2 done" in page and "data-refresh=" not in page
    for name in names:
        assert (await gateway.topics.get(name)).first_settings.perm_text == "read only"
    written = [one async for one in AuditEntry.objects.filter(action="topic changed", target__in=names)]
    assert sorted(one.target for one in written) == names and {one.who for one in written} == {"operator"}


async def test_rest_deletes_many_and_tells_which_were_not(make_topic: Topic, gateway: Gateway, admin: User) -> None:
    names = [await make_topic(f"bulk-gone-{letter}") for letter in "ab"]
    api = await api_for(admin)
    status, started = await api.call("post", "/topic-changes", {"what": "delete", "topics": [*names, "bulk-nowhere"]})
    assert (status, started["state"]) == (202, "running")
    await ended(change_runs.found(started["run"]))
    _, run = await api.call("get", f"/topic-changes/{started['run']}")
    assert (run["state"], run["done"], run["failed"]) == ("done", 2, 1)
    assert run["topics"][0] == {"topic": "bulk-nowhere", "result": "failed", "told": "There is no topic bulk-nowhere."}
    left = {row.name for row in (await gateway.topics.list()).rows}
    assert not left & set(names)
    failed = await AuditEntry.objects.filter(target="bulk-nowhere").alatest("number")
    assert (failed.result, failed.action) == (Result.FAILED, "topic deleted")
    assert (await api.call("post", f"/topic-changes/{started['run']}/stop"))[0] == 409
    assert (await api.call("get", "/topic-changes/999999"))[0] == 404
    assert (await api.call("post", "/topic-changes", {"what": "queues", "topics": ["x"]}))[0] == 422


async def test_queues_and_retention_are_set_apart_and_groups_are_moved(
    make_topic: Topic, gateway: Gateway, transactional_db: None
) -> None:
    topic = await make_topic("bulk-shaped", queues=4)
    for number in range(6):
        await gateway.messages.send(Message(topic, b"%d" % number))
    admin = await gateway.calls.admin()
    await admin.groups.create(SubscriptionGroupConfig("bulk-group"))
    await admin.offsets.reset("bulk-group", topic, 0, await admin.offsets.plan_reset("bulk-group", topic, 0))
    runs = ChangeRuns()
    for wanted in (
        TopicChange("keep", retention_ms=60_000, retention_messages=5),
        TopicChange("skip"),
        TopicChange("queues", read_queues=4, write_queues=2),
    ):
        run = await ended(runs.start(gateway, wanted, [topic], ASKER))
        assert (run.state, run.done) == ("done", 1), run.dealt
    assert [one.dealt[topic].told for one in runs.newest] == ["", "moved: bulk-group (6)", ""]
    now = (await gateway.topics.get(topic)).first_settings
    assert (now.read_queues, now.write_queues, now.retention_ms, now.retention_messages) == (4, 2, 60_000, 5)
    groups, _ = await gateway.groups.of_topic(await gateway.topics.get(topic))
    assert [(group.name, group.lag) for group in groups] == [("bulk-group", 0)]


async def test_a_stopped_run_leaves_the_rest_as_it_is(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def held(self: TopicCalls, name: str) -> None:
        begun.set()
        await go_on.wait()

    monkeypatch.setattr(TopicCalls, "delete", held)
    runs = ChangeRuns()
    run = runs.start(gateway, TopicChange("delete"), [f"t{number}" for number in range(20)], ASKER)
    await begun.wait()
    others = [runs.start(gateway, TopicChange("delete"), ["u"], ASKER)]
    with pytest.raises(NotAllowed, match="run already"):
        runs.start(gateway, TopicChange("delete"), ["v"], ASKER)
    runs.stop(run.number, "bea")
    go_on.set()
    for one in (run, *others):
        await ended(one)
    assert (run.state, run.stopped_by) == ("stopped", "bea")
    assert 0 < len(run.dealt) < 20
    assert [dealt for _, dealt in run.rows[len(run.dealt) :]] == [None] * (20 - len(run.dealt))


async def test_a_limited_account_changes_and_sees_its_own_names_only(gateway: Gateway, transactional_db: None) -> None:
    runs = ChangeRuns()
    foreign = await ended(runs.start(gateway, TopicChange("delete"), ["theirs-x"], ASKER))
    use(NameLimit(("mine-",)))
    try:
        with pytest.raises(NameRefused):
            runs.start(gateway, TopicChange("delete"), ["mine-a", "theirs-b"], ASKER)
        assert runs.newest == []
        with pytest.raises(Exception, match="There is no run"):
            runs.found(foreign.number)
    finally:
        use(NameLimit())


def test_lines_for_a_shell_quote_names_and_move_group_by_group() -> None:
    [line] = admin_lines("ns:9876", TopicChange("keep", retention_ms=60_000), ["a", "%RETRY%g"], {})
    assert line == (
        'for topic in a %RETRY%g; do gantry admin topics set "$topic" --attribute=retention.ms=60000 '
        "--attribute=-retention.messages -n ns:9876; done"
    )
    assert admin_lines("ns:9876", TopicChange("skip"), ["a", "b"], {"g": ["a", "b"]}) == [
        "gantry admin reset g a b --to end --yes -n ns:9876"
    ]
