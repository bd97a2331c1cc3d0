"""Searches that an account keeps."""

from __future__ import annotations

from collections.abc import Callable

from asgiref.sync import sync_to_async

from dashboard.models.management import User
from dashboard.models.saved_searches import SavedSearch
from tests.dashboard.conftest import Client, Topic, api_for


async def test_a_search_is_kept_asked_again_and_deleted_by_its_account_alone(log_in: Client, make_topic: Topic) -> None:
    topic = await make_topic("searched")
    client, other = await log_in("reader"), await log_in("operator")
    page = (await client.get(f"/topic/{topic}?q=tag:paid&since=1+h")).content.decode()
    assert "Save the search" in page
    asked = {"q": "tag:paid", "since": "1 h", "until": "", "queue": ""}
    saved = await client.post(f"/topic/{topic}/searches/save", asked | {"name": "paid & late"})
    assert (saved.status_code, saved.headers["Location"]) == (302, f"/topic/{topic}?q=tag%3Apaid&since=1+h")
    page = (await client.get(f"/topic/{topic}")).content.decode()
    assert f'href="/topic/{topic}?q=tag%3Apaid&amp;since=1+h">paid &amp; late</a>' in page
    page = (await client.get(saved.headers["Location"])).content.decode()
    assert 'aria-current="true">paid &amp; late</a>' in page and "Delete the saved search paid &amp; late" in page
    assert "paid &amp; late" not in (await other.get(f"/topic/{topic}")).content.decode()
    await other.post(f"/topic/{topic}/searches/delete", {"name": "paid & late"})
    assert await SavedSearch.objects.acount() == 1
    await client.post(f"/topic/{topic}/searches/delete", {"name": "paid & late"})
    assert await SavedSearch.objects.acount() == 0


async def test_what_is_no_search_or_too_many_is_not_kept(log_in: Client, make_topic: Topic) -> None:
    topic, client = await make_topic("searched-often"), await log_in("reader")
    address = f"/topic/{topic}/searches/save"
    for number in range(SavedSearch.A_TOPIC_MAX + 1):
        await client.post(address, {"q": f"tag:t{number}", "name": f"search {number}"})
    await client.post(address, {"q": "tag:changed", "name": "search 0"})
    await client.post(address, {"q": "tag:x", "name": ""})
    await client.post(address, {"q": "tag:x", "since": "soon", "name": "no time"})
    kept = {row.name: row.query async for row in SavedSearch.objects.all()}
    assert len(kept) == SavedSearch.A_TOPIC_MAX and kept["search 0"] == "q=tag%3Achanged"
    assert "searches of this topic are saved" in (await client.get(f"/topic/{topic}")).content.decode()


async def test_rest_and_page_share_searches(log_in: Client, make_user: Callable[..., User], make_topic: Topic) -> None:
    topic, client = await make_topic("searched-by-rest"), await log_in("reader")
    own = await api_for(await User.objects.aget(username="reader"), "write")
    other = await api_for(await sync_to_async(make_user)("operator", "ada"))
    path = f"/topics/{topic}/searches"
    asked = {"name": "late", "q": "tag:paid", "since": "1h", "until": "", "queue": ""}
    status, made = await own.call("post", path, asked)
    assert (status, {key: made[key] for key in asked}) == (201, asked)
    assert 'q=tag%3Apaid&amp;since=1h">late</a>' in (await client.get(f"/topic/{topic}")).content.decode()
    await client.post(f"/topic/{topic}/searches/save", {"q": "tag:new", "name": "late"})
    assert [(one["id"], one["q"]) for one in (await own.call("get", path))[1]["items"]] == [(made["id"], "tag:new")]
    for wrong in ({"q": "tag:x"}, {"name": " "}, {"name": "x", "since": "soon"}):
        assert (await own.call("post", path, wrong))[0] == 422, wrong
    for number in range(SavedSearch.A_TOPIC_MAX):
        status, _ = await own.call("post", path, {"name": f"search {number}"})
    assert status == 409
    one = f"{path}/{made['id']}"
    assert ((await other.call("get", path))[1]["items"], (await other.call("delete", one))[0]) == ([], 404)
    assert [(await own.call("delete", one))[0] for _ in range(2)] == [204, 404]
    assert (await own.call("post", "/topics/nowhere/searches", {"name": "x"}))[0] == 404
