"""Reports over REST: asked for, seen, their results, the schedule."""

from __future__ import annotations

from dashboard.models.management import User
from dashboard.models.reports import ReportRun
from dashboard.reports.queue import WAITING_MAX
from tests.dashboard.conftest import api_for


async def test_a_report_is_asked_for_and_seen(users: dict[str, User]) -> None:
    api = await api_for(users["operator"])
    status, run = await api.call("post", "/reports/runs", {"report": "traffic", "days": 1})
    assert (status, run["state"], run["requested_by"], run["rows"]) == (202, "queued", "operator", None)
    assert await api.call("get", f"/reports/runs/{run['id']}") == (200, run)
    assert (await api.call("get", "/reports/runs?report=traffic"))[1] == {"runs": [run], "total": 1}
    assert (await api.call("get", "/reports/runs?report=sizes"))[1] == {"runs": [], "total": 0}
    _, listed = await api.call("get", "/reports")
    assert {one["name"]: one["last_run"] for one in listed["reports"]}["traffic"] == run["id"]
    for address in (f"/reports/runs/{run['id']}/result", f"/reports/runs/{run['id']}/result.csv", "/reports/runs/no"):
        assert (await api.call("get", address))[0] == 404, address
    status, stopped = await api.call("post", f"/reports/runs/{run['id']}/stop")
    assert (status, stopped["state"]) == (200, "cancelled")
    assert (await api.call("post", f"/reports/runs/{run['id']}/stop"))[0] == 409


async def test_no_more_runs_wait_than_a_person_needs(users: dict[str, User]) -> None:
    api = await api_for(users["operator"])
    for _ in range(WAITING_MAX):
        assert (await api.call("post", "/reports/runs", {"report": "traffic"}))[0] == 202
    status, told = await api.call("post", "/reports/runs", {"report": "traffic"})
    assert (status, told["detail"]) == (409, f"{WAITING_MAX} runs are waiting already.")
    assert await ReportRun.objects.acount() == WAITING_MAX


async def test_the_schedule_comes_out_as_it_went_in(users: dict[str, User]) -> None:
    api = await api_for(users["operator"])
    wanted = {"interval_minutes": 360, "days": 30, "reports": ["traffic"]}
    status, saved = await api.call("put", "/reports/schedule", wanted)
    assert (status, {key: saved[key] for key in wanted}) == (200, wanted)
    assert (await api.call("get", "/reports/schedule"))[1] == saved
    status, told = await api.call("put", "/reports/schedule", wanted | {"reports": []})
    assert (status, set(told["fields"])) == (422, {"reports"})
    status, told = await api.call("put", "/reports/schedule", wanted | {"interval_minutes": 1})
    assert (status, set(told["fields"])) == (422, {"interval_minutes"})
