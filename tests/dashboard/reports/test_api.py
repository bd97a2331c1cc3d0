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
    assert (status, run["state"], run["started_by"], run["rows"]) == (202, "queued", "operator", None)
    assert await api.call("get", f"/reports/runs/{run['id']}") == (200, run)
    for report, runs in {"traffic": [run], "sizes": []}.items():
        _, found = await api.call("get", f"/reports/runs?report={report}")
        assert (found["items"], found["total"]) == (runs, len(runs))
    _, listed = await api.call("get", "/reports")
    assert {one["name"]: one["last_run_id"] for one in listed["items"]}["traffic"] == run["id"]
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
    wanted = {"report": "days", "since": "2026-10-24T22:00:00Z", "until": "2026-10-26T00:00:00+01:00",
              "topics": ["orders", "mail"], "zone": "Europe/Berlin"}  # fmt: skip
    status, run = await api.call("post", "/reports/runs", wanted)
    assert (status, run["since"], run["until"]) == (202, "2026-10-24T22:00:00.000Z", "2026-10-25T23:00:00.000Z")
    assert (run["topics"], run["zone"], run["attempt"], run["duration_s"]) == (
        ["orders", "mail"], "Europe/Berlin", 1, None,
    )  # fmt: skip
    assert await api.call("get", f"/reports/runs/{run['id']}/log") == (200, {"run_id": run["id"], "text": ""})
    wrong: dict[str, dict[str, object]] = {
        "until": {"until": None}, "zone": {"zone": "Mars"}, "topics": {"topics": ["a b/"]},
        "since": {"since": 0.5},
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
    both = [{"group": "", "seconds": 600.0}, {"group": "billing", "seconds": 30.0}]
    status, told = await api.call("put", "/reports/promises", {"group": "billing", "seconds": 30})
    assert (status, told["items"]) == (200, both)
    assert (await reader.call("get", "/reports/promises"))[1]["items"] == both
    assert (await api.call("put", "/reports/promises", {"group": "a b", "seconds": 3}))[0] == 422
    assert (await api.call("put", "/reports/promises", {"group": "billing"}))[1]["items"] == both[:1]


async def test_the_weekly_mail_needs_a_mail_channel(users: dict[str, User]) -> None:
    api = await api_for(users["operator"])
    off = {"channel_ids": [], "cron": "0 8 * * mon", "zone": "UTC", "next_run_at": None}
    assert await api.call("get", "/reports/weekly") == (200, off)
    status, told = await api.call("put", "/reports/weekly", {"channel_ids": [7]})
    assert (status, set(told["fields"])) == (422, {"channel_ids"})
    for impossible in (0, 1 << 63):  # no key of the database
        assert (await api.call("put", "/reports/weekly", {"channel_ids": [impossible]}))[0] == 422
    assert (await api.call("post", "/reports/weekly/send"))[0] == 409
    channel = await AlertChannel.objects.acreate(name="boss", kind="mail", settings="{}")
    status, saved = await api.call("put", "/reports/weekly", {"channel_ids": [channel.pk], "zone": "Europe/Berlin"})
    assert (status, saved["channel_ids"], saved["zone"]) == (200, [channel.pk], "Europe/Berlin") and saved[
        "next_run_at"
    ]
    assert (await api.call("post", "/reports/weekly/send"))[0] == 200
    assert (await api.call("post", "/reports/weekly/send"))[0] == 409, "one is being made"
