"""Promises of groups: set on the page, handed to the runs that need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.reports.runs import promises as of_groups
from dashboard.reports.runs.promises import TooManyPromises, promise, promises, promises_for
from tests.dashboard.conftest import Client


async def test_a_promise_is_set_changed_and_taken_away_on_the_page(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    for group, seconds in (("billing", "30"), ("", "600"), ("billing", "45.5")):
        assert (await client.post("/reports/promises", {"group": group, "seconds": seconds})).status_code == 302
    assert await promises() == {"": 600.0, "billing": 45.5}
    page = (await client.get("/reports/")).content.decode()
    assert "billing" in page and "all others" in page
    assert (await client.post("/reports/promises", {"group": "billing"})).status_code == 302
    assert await promises() == {"": 600.0}


@pytest.mark.parametrize("given", [{"group": "a b", "seconds": "5"}, {"group": "a", "seconds": "-1"}, {"seconds": "x"}])
async def test_what_is_no_promise_changes_nothing(data: Path, log_in: Client, given: dict[str, str]) -> None:
    client = await log_in("operator")
    response = await client.post("/reports/promises", given)
    assert (response.status_code, await promises()) == (400, {})
    assert "No promise was changed." in response.content.decode()


@pytest.mark.parametrize("address", ["promises", "weekly", "weekly/send"])
async def test_nothing_is_set_by_get(data: Path, log_in: Client, address: str) -> None:
    assert (await (await log_in("operator")).get(f"/reports/{address}")).status_code == 405


async def test_runs_that_read_groups_get_the_promises_and_others_none(data: Path) -> None:
    await promise("billing", 30)
    assert await promises_for("lag") == {"billing": 30.0}
    assert await promises_for("traffic") == await promises_for("ingest") == {}


async def test_there_is_a_limit(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_groups, "PROMISES_MAX", 1)
    await promise("a", 1)
    await promise("a", 2)
    with pytest.raises(TooManyPromises):
        await promise("b", 1)
    assert await promises() == {"a": 2.0}
