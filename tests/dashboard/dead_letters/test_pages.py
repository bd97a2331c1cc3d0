"""The pages of dead letters and the same by REST: what they show, who may put back, what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.cluster.gateway import Gateway
from dashboard.dead_letters import letters, put_back, runs, views
from dashboard.models import AuditEntry, PutBackRun
from dashboard.models.management import User
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.dead_letters.dead import OUT_OF_STOCK, give_up


@pytest.fixture(autouse=True)
def _long_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step does all, however slow the machine is."""
    monkeypatch.setattr(put_back, "STEP_S", 60.0)
    monkeypatch.setattr(letters, "STEP_S", 60.0)


@pytest.mark.parametrize("role", ["reader", "operator"])
async def test_pages_show_causes_and_who_may_a_button(role: str, log_in: Client, gateway: Gateway, make_topic) -> None:
    group = f"shown-{role}"
    await give_up(gateway, await make_topic(f"dead-{group}"), group, [OUT_OF_STOCK, ""])
    client = await log_in(role)
    listed = (await client.get("/dead-letters", {"q": group})).content.decode()
    assert f'href="/dead-letters/{group}"' in listed and "1 of 2" in listed
    page = (await client.get(f"/dead-letters/{group}")).content.decode()
    assert OUT_OF_STOCK in page and "OutOfStock: none of 0 left" in page and "no cause reported" in page
    assert ("data-resend" in page) is ("gantry admin dead-letters resend" in page) is (role == "operator")
    chosen = (await client.get(f"/dead-letters/{group}", {"q": 'CONSUME_ERROR=""'})).content.decode()
    assert "no cause reported" in chosen and "OutOfStock: none of 0 left" not in chosen
    assert (await client.get(f"/dead-letters/{group}", {"since": "soon"})).status_code == 422
    assert (await client.get("/dead-letters/no-such-group")).status_code == 404
    step = await client.post(f"/dead-letters/{group}/resend", {"to": "group", "rate": "200", "dry_run": "on"})
    assert step.status_code == (200 if role == "operator" else 403)
    if role == "operator":
        assert (json.loads(step.content)["matched"], json.loads(step.content)["older"]) == (2, None)
        assert (await client.get(f"/dead-letters/{group}/resend")).status_code == 405
        refused = await client.post(f"/dead-letters/{group}/resend", {"to": "moon", "rate": "0"})
        assert (refused.status_code, set(json.loads(refused.content)["fields"])) == (422, {"to", "rate"})


async def test_rest_counts_puts_back_and_tells_what_became_of_each(
    users: dict[str, User], gateway: Gateway, make_topic: Topic
) -> None:
    await give_up(gateway, await make_topic("dead-rest"), "rests", [OUT_OF_STOCK, ""])
    api = await api_for(users["operator"])
    _, listed = await api.call("get", "/dead-letters?q=rests")
    (row,) = listed["items"]
    assert (row["group"], row["stored"], len(row["causes"])) == ("rests", 2, 2)
    status, found = await api.call("get", "/dead-letters/rests/causes")
    assert (status, found["matched"], {cause["cause"] for cause in found["items"]}) == (200, 2, {OUT_OF_STOCK, ""})
    (condition,) = [cause["condition"] for cause in found["items"] if cause["cause"]]
    body = {"q": condition, "rate": 200, "dry_run": True}
    _, counted = await api.call("post", "/dead-letters/rests/resend", body)
    assert (counted["matched"], counted["scanned"], counted["items"]) == (1, 2, [])
    status, done = await api.call("post", "/dead-letters/rests/resend", {"q": condition, "rate": 200})
    ((result,), older) = done["items"], done["next"]
    assert (status, result["state"], result["cause"], older) == (200, "sent", OUT_OF_STOCK, None)
    _, records = await api.call("get", "/dead-letters/rests/results")
    assert (records["total"], records["items"][0]["sent_by"]) == (1, "operator")
    assert records["items"][0]["detail"] == result["detail"]
    assert (await api.call("post", "/dead-letters/rests/resend", {"rate": 0}))[0] == 422
    assert (await api.call("get", "/dead-letters/no-such-group/causes"))[0] == 404


async def test_a_run_is_started_watched_and_ended_by_page(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await give_up(gateway, await make_topic("dead-page-run"), "page-runs", [OUT_OF_STOCK, ""])
    client, reader = await log_in("operator"), await log_in("reader")
    fields = {"to": "group", "rate": "200", "older": "", "wanted": "2"}
    started = await client.post("/dead-letters/page-runs/runs/start", fields)
    assert (started.status_code, started["Location"]) == (302, "/dead-letters/page-runs#resend-runs")
    row = await PutBackRun.objects.aget()
    for viewer, has_button in ((client, True), (reader, False)):
        page = (await viewer.get("/dead-letters/page-runs")).content.decode()
        assert 'data-refresh="/dead-letters/page-runs/runs"' in page and "<b>0 of 2</b>" in page
        assert (f"/runs/{row.pk}/do" in page) is has_button
    ours = "http://testserver/dead-letters/page-runs"
    refused = await client.post("/dead-letters/page-runs/runs/start", fields, headers={"referer": ours})
    assert refused.status_code == 409 and '<a href="/dead-letters/page-runs">Back</a>' in refused.content.decode()
    foreign = {"referer": "http://elsewhere/dead-letters/page-runs"}
    refused = await client.post("/dead-letters/page-runs/runs/start", fields, headers=foreign)
    assert refused.status_code == 409 and "Back" not in refused.content.decode()
    assert (await client.post(f"/dead-letters/page-runs/runs/{row.pk}/do", {"what": "stop"})).status_code == 302
    fragment = (await reader.get("/dead-letters/page-runs/runs")).content.decode()
    assert "stopped by operator" in fragment and "data-refresh=" not in fragment
    assert (await client.post(f"/dead-letters/page-runs/runs/{row.pk}/do", {"what": "resume"})).status_code == 302
    await row.arefresh_from_db()
    await runs.work(row)
    done = (await reader.get("/dead-letters/page-runs")).content.decode()
    assert "2 resent" in done and "Messages of the newest run" in done
    entries = AuditEntry.objects.filter(target="page-runs", result="done").order_by("number")
    assert [entry.action async for entry in entries] == [
        "dead letters: run started",
        "dead letters: run stopped",
        "dead letters: run resumed",
    ]
    refused = await client.post("/dead-letters/page-runs/runs/start", fields | {"rate": "0"})
    assert refused.status_code == 302 and await PutBackRun.objects.acount() == 1


async def test_letters_are_discarded_by_their_number(
    log_in: Client, gateway: Gateway, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give_up(gateway, await make_topic("dead-page-gone"), "page-gones", [OUT_OF_STOCK, ""])
    client = await log_in("operator")
    asked = (await client.get("/dead-letters/page-gones/discard")).content.decode()
    assert OUT_OF_STOCK in asked and "export/jsonl" in asked and "letters=2" in asked
    assert "gantry admin dead-letters discard page-gones --letters 2" in asked
    assert "All of them as" in asked and "gantry admin dead-letters export page-gones" in asked
    with monkeypatch.context() as patched:
        patched.setattr(views, "MESSAGES_MAX", 1)  # what a file can't hold is not promised
        cut = (await client.get("/dead-letters/page-gones/discard")).content.decode()
    assert "The newest 1 as" in cut and "All of them as" not in cut
    wrong = await client.post("/dead-letters/page-gones/discard", {"letters": "3"})
    assert wrong.status_code == 422 and "There are 2 now" in wrong.content.decode()
    done = await client.post("/dead-letters/page-gones/discard", {"letters": "2"})
    assert (done.status_code, done["Location"]) == (302, "/dead-letters")
    assert (await client.get("/dead-letters/page-gones")).status_code == 404
    entry = await AuditEntry.objects.aget(target="page-gones", action="dead letters discarded")
    assert (json.loads(entry.details), entry.who) == ({"letters": 2}, "operator")


async def test_rest_starts_stops_and_discards(users: dict[str, User], gateway: Gateway, make_topic: Topic) -> None:
    await give_up(gateway, await make_topic("dead-rest-run"), "rest-runs", [OUT_OF_STOCK, ""])
    api = await api_for(users["operator"])
    _, counted = await api.call("post", "/dead-letters/rest-runs/resend", {"dry_run": True})
    since = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    body = {"cursor": counted["begin"], "counted": counted["matched"], "rate": 200, "since": since}
    status, run = await api.call("post", "/dead-letters/rest-runs/runs", body)
    assert (status, run["state"], run["counted"], run["started_by"]) == (201, "running", 2, "operator")
    assert run["since"] and run["until"] is None and run["next"] == counted["begin"]
    address = f"/dead-letters/rest-runs/runs/{run['id']}"
    assert (await api.call("delete", "/dead-letters/rest-runs?letters=2"))[0] == 409
    assert (await api.call("post", f"{address}/stop"))[1]["stopped_by"] == "operator"
    assert (await api.call("post", f"{address}/stop"))[0] == 409
    assert (await api.call("post", f"{address}/resume"))[1]["state"] == "running"
    await runs.work(await PutBackRun.objects.aget())
    _, done = await api.call("get", address)
    assert (done["state"], done["sent"], done["next"]) == ("done", 2, None)
    _, listed = await api.call("get", "/dead-letters/rest-runs/runs")
    assert (listed["total"], listed["items"]) == (1, [done])
    assert (await api.call("delete", "/dead-letters/rest-runs?letters=9"))[0] == 409
    assert await api.call("delete", "/dead-letters/rest-runs?letters=2") == (200, {"group": "rest-runs", "letters": 2})
