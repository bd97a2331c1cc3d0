"""Reports over REST: asked for, seen, their results, the schedule."""

from __future__ import annotations

from dashboard.models.alerts import AlertChannel
from dashboard.models.management import User
from dashboard.models.reports import ReportRun
from dashboard.reports.runs.queue import WAITING_MAX
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


async def test_a_run_may_have_a_range_topics_and_a_zone_of_its_own(users: dict[str, User]) -> None:
    api = await api_for(users["operator"])
    wanted = {"report": "days", "begin": "2026-10-24T22:00:00Z", "end": "2026-10-26T00:00:00+01:00",
              "topics": ["orders", "mail"], "zone": "Europe/Berlin"}  # fmt: skip
    status, run = await api.call("post", "/reports/runs", wanted)
    assert (status, run["begin"], run["end"]) == (202, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
    assert (run["topics"], run["zone"], run["attempt"], run["duration_s"]) == (
        ["orders", "mail"],
        "Europe/Berlin",
        1,
        None,
    )
    assert await api.call("get", f"/reports/runs/{run['id']}/log") == (200, {"run": run["id"], "text": ""})
    wrong: dict[str, dict[str, object]] = {
        "end": {"end": None}, "zone": {"zone": "Mars"}, "topics": {"topics": ["a b/"]},
        "begin": {"begin": "2026-10-24T22:00:00"},
    }  # fmt: skip
    for field, change in wrong.items():
        status, told = await api.call("post", "/reports/runs", wanted | change)
        assert (status, set(told["fields"])) == (422, {field})


async def test_the_schedule_takes_a_cron_line(users: dict[str, User]) -> None:
    api = await api_for(users["operator"])
    wanted = {"interval_minutes": 60, "days": 7, "reports": ["lag"], "cron": "0 6 * * mon", "zone": "Europe/Berlin"}
    status, saved = await api.call("put", "/reports/schedule", wanted)
    assert (status, {key: saved[key] for key in wanted}) == (200, wanted)
    for field, value in (("cron", "soon"), ("cron", "* * * * *"), ("zone", "Mars")):
        status, told = await api.call("put", "/reports/schedule", wanted | {field: value})
        assert (status, set(told["fields"])) == (422, {field})


async def test_promises_are_set_and_taken_away(users: dict[str, User]) -> None:
    api, reader = await api_for(users["operator"]), await api_for(users["reader"])
    assert (await api.call("put", "/reports/promises", {"seconds": 600}))[0] == 200
    both = {"promises": {"": 600.0, "billing": 30.0}}
    assert await api.call("put", "/reports/promises", {"group": "billing", "seconds": 30}) == (200, both)
    assert await reader.call("get", "/reports/promises") == (200, both)
    assert (await reader.call("put", "/reports/promises", {"group": "billing"}))[0] == 403
    assert (await api.call("put", "/reports/promises", {"group": "a b", "seconds": 3}))[0] == 422
    assert await api.call("put", "/reports/promises", {"group": "billing"}) == (200, {"promises": {"": 600.0}})


async def test_the_weekly_mail_needs_a_mail_channel(users: dict[str, User]) -> None:
    api = await api_for(users["operator"])
    off = {"channels": [], "cron": "0 8 * * mon", "zone": "UTC", "next_at": None}
    assert await api.call("get", "/reports/weekly") == (200, off)
    status, told = await api.call("put", "/reports/weekly", {"channels": [7]})
    assert (status, set(told["fields"])) == (422, {"channels"})
    assert (await api.call("post", "/reports/weekly/send"))[0] == 409
    channel = await AlertChannel.objects.acreate(name="boss", kind="mail", settings="{}")
    status, saved = await api.call("put", "/reports/weekly", {"channels": [channel.pk], "zone": "Europe/Berlin"})
    assert (status, saved["channels"], saved["zone"]) == (200, [channel.pk], "Europe/Berlin") and saved["next_at"]
    assert (await api.call("post", "/reports/weekly/send"))[0] == 200
    assert (await api.call("post", "/reports/weekly/send"))[0] == 409, "one is being made"
