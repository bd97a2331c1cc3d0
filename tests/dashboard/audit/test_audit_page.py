"""The audit log for readers: page, REST and exports ask the same way."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.audit.chain import Change, append
from dashboard.audit.views import PAGE_ENTRIES
from dashboard.models.audit import AuditEntry, Result, Way
from dashboard.models.management import User
from tests.dashboard.conftest import Client, api_for


async def written() -> None:
    now = timezone.now()
    changes = [
        Change(who="alice", way=Way.PAGE, address="10.0.0.1", action="topic deleted", target="<b>orders</b>",
               details={"queues": 4}, at=now - timedelta(hours=3)),
        Change(who="alice (token gmq_abc…)", way=Way.REST, address="10.0.0.2",
               action="group's offsets reset", target="=billing"),
        Change(who="", way=Way.REMOTING, address="10.0.0.3", action="topic deleted", target="plain",
               result=Result.REFUSED, told="no permission"),
        Change(who="gantry-appliance", way=Way.REMOTING, address="127.0.0.1", action="topic deleted", target="own"),
    ]  # fmt: skip
    await sync_to_async(append)(changes)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [3, 2, 1]), ("own=1", [4, 3, 2, 1]), ("q=ORDERS", [1]), ("who=alice", [2, 1]), ("way=remoting", [3]),
        ("result=refused", [3]), ("since=1 h", [3, 2]), ("until=1 h", [1]), ("q=nothing", []),
    ],
)  # fmt: skip
async def test_the_list_shows_what_is_asked_for(log_in: Client, query: str, numbers: list[int]) -> None:
    await written()
    client = await log_in("operator")
    response = await client.get(f"/audit?{query}")
    page = response.content.decode()
    assert response.status_code == 200 and "<b>orders</b>" not in page
    assert [number for number in range(9, 0, -1) if f"no. {number}<" in page] == numbers
    lines = b"".join([part async for part in (await client.get(f"/audit/export.jsonl?{query}")).streaming_content])
    assert [json.loads(line)["number"] for line in lines.splitlines()] == numbers


async def test_a_request_to_each_broker_is_one_line(log_in: Client) -> None:
    """As brokers write it where accounts are off: by no account."""
    now = timezone.now()

    def seen_by(broker: str, seconds: float, **others: Any) -> Change:
        values = {"target": "orders", "details": {"broker": broker, "perm": "6"}} | others
        return Change(who="", way=Way.REMOTING, address="10.0.0.3", action="topic created or changed",
                      at=now - timedelta(seconds=seconds), **values)  # fmt: skip

    await sync_to_async(append)([
        seen_by("a", 60), seen_by("a", 3), seen_by("a", 2.5, target="payments"), seen_by("b", 2),
        seen_by("b", 1.5, target="payments"), seen_by("c", 1, details={"broker": "c", "perm": "4"}), seen_by("c", 0),
    ])  # fmt: skip
    client = await log_in("operator")
    page = (await client.get("/audit?q=orders")).content.decode()
    assert re.findall(r"no. ([\d, ]+)<", page) == ["7, 4, 2", "6", "1"], "of one minute, and of the same values"
    assert "3 brokers" in page and "<code>a, b, c</code>" in page
    assert "2 brokers" in (await client.get("/audit?q=payments")).content.decode()


def asked_at(broker: str, at: datetime, **others: Any) -> Change:
    """One request as a broker wrote it, to all brokers alike."""
    values = {"target": "orders", "details": {"broker": broker, "perm": "6"}} | others
    return Change(who="", way=Way.REMOTING, address="10.0.0.3", action="topic created or changed", at=at, **values)


async def test_requests_of_other_hours_are_other_lines_where_a_trail_follows_another(log_in: Client) -> None:
    now = timezone.now()
    hours = [now - timedelta(hours=back) for back in (3, 2, 1)]
    near = [now - timedelta(seconds=back) for back in (9, 3)]
    await sync_to_async(append)([
        *(asked_at("a", at) for at in hours),
        *(asked_at("b", at + timedelta(seconds=1)) for at in hours[:2]),  # it was away an hour ago
        asked_at("c", near[0], target="near"), *(asked_at("d", at, target="near") for at in near),
    ])  # fmt: skip
    client = await log_in("operator")
    page = (await client.get("/audit?q=orders")).content.decode()
    assert re.findall(r"no. ([\d, ]+)<", page) == ["5, 2", "4, 1", "3"]
    page = (await client.get("/audit?q=near")).content.decode()
    assert re.findall(r"no. ([\d, ]+)<", page) == ["8", "7, 6"], "with the nearest in time"


async def test_a_request_about_each_broker_itself_is_one_line(log_in: Client) -> None:
    """A change of settings names no topic: its target is the broker that wrote it."""
    now = timezone.now()
    await sync_to_async(append)([asked_at(name, now, target=name) for name in ("a", "b")])
    await sync_to_async(append)([asked_at("c", now, target="a")])
    page = (await (await log_in("operator")).get("/audit")).content.decode()
    assert re.findall(r"no. ([\d, ]+)<", page) == ["3", "2, 1"]
    assert "2 brokers" in page and "<code>a, b</code>" in page and "<b>b</b>" not in page


async def test_a_line_is_whole_where_a_page_ends_within_it(log_in: Client) -> None:
    now = timezone.now()
    await sync_to_async(append)([
        asked_at("x", now, target="last"), *(asked_at(name, now) for name in ("a", "b", "c")),
        *(asked_at("x", now, target=f"t{number}") for number in range(PAGE_ENTRIES - 1)),
    ])  # fmt: skip
    client = await log_in("operator")
    numbers = re.findall(r"no. ([\d, ]+)<", (await client.get("/audit")).content.decode())
    assert len(numbers) == PAGE_ENTRIES and numbers[-1] == "4, 3, 2"
    page = (await client.get("/audit?page=2")).content.decode()
    assert re.findall(r"no. ([\d, ]+)<", page) == ["1"] and "brokers</span>" not in page


async def test_no_entry_is_on_no_page_where_brokers_write_much_at_once(log_in: Client) -> None:
    """Trails follow one another as a whole: a request's parts lie on every page."""
    now, topics, brokers = timezone.now(), 30, 9
    await sync_to_async(append)([
        asked_at(f"b{broker}", now, target=f"t{topic}") for broker in range(brokers) for topic in range(topics)
    ])  # fmt: skip
    client = await log_in("operator")
    pages = [(await client.get(f"/audit?page={page}")).content.decode() for page in range(1, 7)]
    lines = re.findall(r"no. ([\d, ]+)<", "".join(pages))
    assert {int(number) for line in lines for number in line.split(",")} == set(range(1, topics * brokers + 1))
    assert all("Nothing was changed yet" not in page for page in pages), "nor is a page without lines of its own"


async def test_the_page_says_whether_the_chain_is_whole(log_in: Client) -> None:
    await written()
    client = await log_in("admin")
    assert "The chain is intact: 4 changes" in (await client.get("/audit?check=1")).content.decode()
    await AuditEntry.objects.filter(number=2).aupdate(who="mallory")
    assert "The chain is broken at entry 2" in (await client.get("/audit?check=1")).content.decode()


async def test_a_spreadsheet_computes_nothing(log_in: Client) -> None:
    await written()
    response = await (await log_in("operator")).get("/audit/export.csv?q=billing")
    text = b"".join([part async for part in response.streaming_content]).decode()
    [row] = list(csv.DictReader(io.StringIO(text)))
    assert (row["target"], row["who"]) == ("'=billing", "alice (token gmq_abc…)")


async def test_mistakes_are_told(log_in: Client) -> None:
    client = await log_in("operator")
    assert (await client.get("/audit?since=nonsense")).status_code == 422
    assert (await client.get("/audit/export.xml")).status_code == 404


async def test_rest_gives_the_same(users: dict[str, User]) -> None:
    await written()
    api = await api_for(users["operator"])
    status, found = await api.call("get", "/audit?who=alice&limit=1")
    assert status == 200 and found["total"] == 2
    [entry] = found["items"]
    assert (entry["action"], entry["way"], entry["result"], entry["details"]) == (
        "group's offsets reset",
        "rest",
        "done",
        {},
    )
    status, state = await api.call("get", "/audit/chain")
    assert (status, state["is_whole"], state["count"], state["broken_at"]) == (200, True, 4, None)
    await AuditEntry.objects.filter(number=3).adelete()
    assert (await api.call("get", "/audit/chain"))[1]["broken_at"] == 4
