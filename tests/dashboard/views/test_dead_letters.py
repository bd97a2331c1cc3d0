"""The pages of dead letters and the same by REST: what they show, who may put back, what is refused."""

from __future__ import annotations

import json

import pytest

from dashboard.cluster.gateway import Gateway
from dashboard.dead_letters import letters, put_back
from dashboard.models.management import User
from tests.dashboard.conftest import Client, api_for
from tests.dashboard.dead_letters.dead import OUT_OF_STOCK, give_up


@pytest.fixture(autouse=True)
def _long_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step does all, however slow the machine is."""
    monkeypatch.setattr(put_back, "STEP_S", 60.0)
    monkeypatch.setattr(letters, "STEP_S", 60.0)


@pytest.mark.parametrize("role", ["reader", "operator"])
async def test_pages_show_causes_and_only_who_may_gets_the_button(
    role: str, log_in: Client, gateway: Gateway, make_topic
) -> None:  # type: ignore[no-untyped-def]
    group = f"shown-{role}"
    await give_up(gateway, await make_topic(f"dead-{group}"), group, [OUT_OF_STOCK, ""])
    client = await log_in(role)
    listed = (await client.get("/dead-letters", {"q": group})).content.decode()
    assert f'href="/dead-letters/{group}"' in listed and "1 of 2" in listed
    page = (await client.get(f"/dead-letters/{group}")).content.decode()
    assert OUT_OF_STOCK in page and "OutOfStock: none of 0 left" in page and "no client told" in page
    assert ("data-put-back" in page) is ("/put-back -H" in page) is (role == "operator")
    chosen = (await client.get(f"/dead-letters/{group}", {"q": 'CONSUME_ERROR=""'})).content.decode()
    assert "no client told" in chosen and "OutOfStock: none of 0 left" not in chosen
    assert (await client.get(f"/dead-letters/{group}", {"since": "soon"})).status_code == 422
    assert (await client.get("/dead-letters/no-such-group")).status_code == 404
    step = await client.post(f"/dead-letters/{group}/put-back", {"to": "group", "rate": "200", "dry_run": "on"})
    assert step.status_code == (200 if role == "operator" else 403)
    if role == "operator":
        assert (json.loads(step.content)["matched"], json.loads(step.content)["older"]) == (2, None)
        assert (await client.get(f"/dead-letters/{group}/put-back")).status_code == 405
        refused = await client.post(f"/dead-letters/{group}/put-back", {"to": "moon", "rate": "0"})
        assert (refused.status_code, set(json.loads(refused.content)["fields"])) == (422, {"to", "rate"})


async def test_rest_counts_puts_back_and_tells_what_became_of_each(
    users: dict[str, User], gateway: Gateway, make_topic
) -> None:  # type: ignore[no-untyped-def]
    await give_up(gateway, await make_topic("dead-rest"), "rests", [OUT_OF_STOCK, ""])
    api = await api_for(users["operator"])
    _, listed = await api.call("get", "/dead-letters?q=rests")
    (row,) = listed["groups"]
    assert (row["group"], row["stored"], len(row["causes"])) == ("rests", 2, 2)
    status, found = await api.call("get", "/dead-letters/rests/causes")
    assert (status, found["matched"], {cause["cause"] for cause in found["causes"]}) == (200, 2, {OUT_OF_STOCK, ""})
    (condition,) = [cause["condition"] for cause in found["causes"] if cause["cause"]]
    body = {"q": condition, "rate": 200, "dry_run": True}
    _, counted = await api.call("post", "/dead-letters/rests/put-back", body)
    assert (counted["matched"], counted["scanned"], counted["results"]) == (1, 2, [])
    status, done = await api.call("post", "/dead-letters/rests/put-back", {"q": condition, "rate": 200})
    ((result,), older) = done["results"], done["older"]
    assert (status, result["state"], result["cause"], older) == (200, "sent", OUT_OF_STOCK, None)
    _, records = await api.call("get", "/dead-letters/rests/results")
    assert (records["total"], records["results"][0]["username"]) == (1, "operator")
    assert records["results"][0]["told"] == result["told"]
    status, _ = await (await api_for(users["operator"], "read")).call("post", "/dead-letters/rests/put-back", {})
    assert status == 403
    assert (await api.call("post", "/dead-letters/rests/put-back", {"rate": 0}))[0] == 422
    assert (await api.call("get", "/dead-letters/no-such-group/causes"))[0] == 404
