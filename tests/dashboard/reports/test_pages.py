"""The Reports pages and the schedule: asking, running, showing, downloading; who may; what a restart finds."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings as django_settings
from django.test import AsyncClient

from appliance.reports.catalogue import REPORTS, Kind
from appliance.reports.install_state import install_state
from appliance.reports.runs import HOUR_MS, RunFolder, RunStatus, new_run_id, write_json
from dashboard.models.alerts import AlertChannel
from dashboard.models.management import User
from dashboard.models.reports import ReportRun
from dashboard.reports.runs.queue import STOPPED, WAITING_MAX, claim_next, enqueue
from dashboard.reports.schedule import CUT_OFF, CUT_OFF_EACH_TIME, ReportSchedule
from dashboard.reports.tables import SHOWN
from dashboard.reports.views import chart_figure
from tests.appliance.reports.stores import Record, write_log
from tests.conftest import missing
from tests.dashboard.conftest import Client
from tests.dashboard.finished_run import NASTY, NOW, finished_run
from tests.waiting import WITHIN_S, until

ROOT = Path(__file__).parents[3]


async def text_of(client: AsyncClient, address: str) -> str:
    response = await client.get(address)
    assert response.status_code == 200, response.content
    return response.content.decode()


async def test_an_empty_page_teaches_what_to_do(data: Path, log_in: Client) -> None:
    page = await text_of(await log_in("operator"), "/reports/")
    assert "No reports yet" in page and "Run now" in page
    assert re.search(r'<option value="7" selected[^>]*>last 7 days', page), "the button and the line run the same"
    assert f"gantry report traffic --data {data} --days 7" in page


async def test_a_reader_looks_and_is_offered_no_run(data: Path, log_in: Client) -> None:
    """S53."""
    client = await log_in("reader")
    run = await finished_run(data)
    await AlertChannel.objects.acreate(name="mail", kind="mail", is_on=True)
    page = await text_of(client, "/reports/")
    assert "Run now" not in page
    assert not re.findall(r"</summary>\s*</details>", page), "what is folded opens to something"
    assert all(words in page for words in ("Schedule", "next at", "Promises", "Weekly summary by mail"))
    await text_of(client, f"/reports/runs/{run.run_id}")


async def test_nothing_is_started_by_get_or_without_login(data: Path, log_in: Client) -> None:
    """S53."""
    client = await log_in("operator")
    for address in ("/reports/run", "/reports/schedule"):
        assert (await client.get(address)).status_code == 405
    for address in ("/reports/", "/reports/runs", f"/reports/runs/{new_run_id()}"):
        assert (await AsyncClient().get(address)).status_code in (302, 401)
    assert await ReportRun.objects.acount() == 0


async def test_the_list_of_runs_is_no_page_of_its_own(data: Path, log_in: Client) -> None:
    client = await log_in("reader")
    response = await client.get("/reports/runs")
    assert (response.status_code, response.headers["Location"]) == (302, "/reports/")
    assert (await client.get("/reports/runs", headers={"hx-request": "true"})).status_code == 200


@pytest.mark.parametrize(
    ("hours", "shown"),
    [
        (["2026-11-21 09:00"], ["2026-11-20 22:00", "2026-11-21 10:00"]),
        (["2026-11-18 05:00", "2026-11-21 09:00"], ["2026-11-18 05:00", "2026-11-21 10:00"]),
        (["2026-11-16 05:00", "2026-11-17 09:00"], ["2026-11-16 05:00", "2026-11-17 10:00"]),
        (["2026-11-01 05:00"], ["2026-11-14 10:00", "2026-11-21 10:00"]),
    ],
)
def test_a_chart_shows_where_messages_are_wide_enough_to_be_seen(hours: list[str], shown: list[str]) -> None:
    end_ms = int(datetime(2026, 11, 21, 10, tzinfo=UTC).timestamp() * 1000)
    figure = chart_figure({"hours": hours, "series": []}, end_ms - 7 * 24 * HOUR_MS, end_ms)
    assert [f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M}" for at in figure["shown"]] == shown


async def test_run_now_puts_a_run_in_the_queue(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    response = await client.post("/reports/run", {"report": "sizes", "days": "7"})
    run = await ReportRun.objects.select_related("requested_by").aget()
    assert (response.status_code, response.headers["Location"]) == (302, f"/reports/runs/{run.run_id}")
    assert run.requested_by is not None
    assert (run.state, run.requested_by.username) == ("queued", "operator")
    assert run.end_ms - run.begin_ms == 7 * 24 * HOUR_MS
    assert run.end_ms - time.time() * 1000 <= HOUR_MS
    page = await text_of(client, "/reports/")
    assert "Waiting" in page and "was=live" in page


async def test_a_report_that_is_not_offered_is_refused(data: Path, log_in: Client) -> None:
    """S50."""
    client = await log_in("operator")
    for report in ("", "ingest", "traffic; DROP TABLE x"):
        assert (await client.post("/reports/run", {"report": report, "days": "7"})).status_code == 400


@pytest.mark.parametrize("days", ["", "3", "1; DROP TABLE x", "-1"])
async def test_a_range_that_is_not_offered_is_refused(data: Path, log_in: Client, days: str) -> None:
    """S50."""
    assert (
        await (await log_in("operator")).post("/reports/run", {"report": "traffic", "days": days})
    ).status_code == 400
    assert await ReportRun.objects.acount() == 0


async def test_clicking_on_does_not_fill_the_queue(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    for _ in range(WAITING_MAX + 2):
        await client.post("/reports/run", {"report": "traffic", "days": "1"})
    assert await ReportRun.objects.acount() == WAITING_MAX


async def test_a_result_is_shown_with_its_chart_and_strange_names_stay_inert(data: Path, log_in: Client) -> None:
    client, run = await log_in("reader"), await finished_run(data)
    for address in ("/reports/", f"/reports/runs/{run.run_id}"):
        response = await client.get(address)
        page = response.content.decode()
        assert "1\u202f234" in page and "7 bytes of the log were deleted" in page
        assert "<img" not in page and "dashboard/bars.js" in page
        assert "'unsafe-inline'" not in response["Content-Security-Policy"]
        figure = page.split('id="traffic-figure" type="application/json">')[1].split("</script>")[0]
        assert json.loads(figure)["series"][0]["name"] == NASTY


async def test_any_report_is_shown_by_its_columns_with_a_chart_and_downloaded(data: Path, log_in: Client) -> None:
    table_page_of = pytest.importorskip("appliance.reports.results").table_page_of
    client = await log_in("reader")
    run = await enqueue("retries", 1, requested_by=None, now=NOW)
    row = {
        "day": "2026-11-21", "group": NASTY, "cause": NASTY, "retried": 1234, "dead_letters": 5, "attempts_max": None,
    }  # fmt: skip
    folder = RunFolder.in_data(data, run.run_id)
    folder.path.mkdir(parents=True)
    shown = table_page_of(REPORTS["retries"], [row]) | {"notes": ["broker-a: 7 bytes of the log were deleted"]}
    write_json(folder.path / "page.json", shown)
    folder.result("csv", "retries").write_text("day\n")
    await ReportRun.objects.aupdate(state=ReportRun.State.SUCCEEDED, rows=1)
    page = await text_of(client, f"/reports/runs/{run.run_id}")
    assert "Retries and dead letters" in page and "1\u202f234" in page and "7 bytes of the log were deleted" in page
    assert "<img" not in page and "dashboard/bars.js" in page and "—" in page
    figure = page.split('id="report-figure" type="application/json">')[1].split("</script>")[0]
    assert json.loads(figure) == {
        "x": ["2026-11-21"], "series": [{"name": NASTY, "values": [1234]}], "is_stacked": True, "kind": "count",
    }  # fmt: skip
    assert (await client.get(f"/reports/runs/{run.run_id}/retries.csv")).status_code == 200
    assert (await client.get(f"/reports/runs/{run.run_id}/traffic.csv")).status_code == 404
    assert "Retries and dead letters" in await text_of(client, "/reports/")
    write_json(folder.path / "page.json", table_page_of(REPORTS["retries"], []) | {"notes": []})
    assert "Nothing to show for this range" in await text_of(client, f"/reports/runs/{run.run_id}")


async def test_the_report_of_slaves_draws_them_side_by_side_and_says_if_none_is(data: Path, log_in: Client) -> None:
    table_page_of = pytest.importorskip("appliance.reports.results").table_page_of
    client = await log_in("reader")
    run = await enqueue("slaves", 1, requested_by=None, now=NOW)
    common = {"behind_messages": None, "behind_seconds": 2.5, "minutes": 60, "in_sync": 0.75, "bytes_per_second": 2048}
    rows = [
        {"hour": "2026-11-21 12:00", "slave": slave, "behind_bytes": behind, **common}
        for slave, behind in (("broker-a:1", 5), ("broker-b:1", 700))
    ]
    folder = RunFolder.in_data(data, run.run_id)
    folder.path.mkdir(parents=True)
    write_json(folder.path / "page.json", table_page_of(REPORTS["slaves"], rows) | {"notes": []})
    await ReportRun.objects.aupdate(state=ReportRun.State.SUCCEEDED, rows=2)
    page = await text_of(client, f"/reports/runs/{run.run_id}")
    assert "Slaves behind their masters" in page and "2.5\u202fs" in page and "75\u202f%" in page and "—" in page
    figure = json.loads(page.split('id="report-figure" type="application/json">')[1].split("</script>")[0])
    assert [(bars["name"], bars["values"]) for bars in figure["series"]] == [("broker-b:1", [700]), ("broker-a:1", [5])]
    assert figure["is_stacked"] is False
    write_json(folder.path / "page.json", table_page_of(REPORTS["slaves"], []) | {"notes": []})
    assert "No slave was seen in this range." in await text_of(client, f"/reports/runs/{run.run_id}")


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Kind.CHANGE, 0.5, "+50\u202f%"), (Kind.CHANGE, -0.5, "-50\u202f%"), (Kind.CHANGE, None, "—"),
        (Kind.SHARE, 0.25, "25\u202f%"), (Kind.TIME, 1_795_262_400_000, "2026-11-21 12:00:00"),
        (Kind.MS, -3.0, "-3\u202fms"), (Kind.SECONDS, 2.5, "2.5\u202fs"),
        (Kind.BYTES, 2048.0, "2.0\u202fKiB"), (Kind.TEXT, "<b>", "<b>"),
    ],
)  # fmt: skip
def test_a_value_is_shown_in_its_unit(kind: Kind, value: Any, text: str) -> None:
    assert SHOWN[kind](value) == text


async def test_the_csv_is_downloaded_as_it_was_written(data: Path, log_in: Client) -> None:
    client, run = await log_in("reader"), await finished_run(data)
    response = await client.get(f"/reports/runs/{run.run_id}/traffic.csv")
    assert response.status_code == 200
    body = b"".join([chunk async for chunk in response]).decode()  # type: ignore[attr-defined]
    assert list(csv.reader(io.StringIO(body)))[1] == ["2026-11-21T12:00:00Z", "'=evil"]
    assert response["Content-Disposition"] == f'attachment; filename="traffic-{run.run_id}.csv"'
    for address in ("traffic.exe", "traffic.parquet", "../secret_key"):
        assert (await client.get(f"/reports/runs/{run.run_id}/{address}")).status_code == 404
    assert (await client.get("/reports/runs/..%2f..%2fdashboard")).status_code == 404


async def test_the_list_asks_for_a_new_page_once_nothing_is_going_on_any_more(data: Path, log_in: Client) -> None:
    client = await log_in("reader")
    run = await enqueue("traffic", 1, requested_by=None)
    folder = RunFolder.in_data(data, run.run_id)
    await claim_next()
    folder.path.mkdir(parents=True)
    folder.write_progress("ingest", "Reading the commit log of broker-a", 5000)
    response = await client.get("/reports/runs?was=live", headers={"HX-Request": "true"})
    listed, _, history = response.content.decode().partition('<details class="card fold settings-section" id="runs">')
    for table in (listed, history):  # the history is folded, so the list of reports says how far the run is
        assert "Reading the commit log of broker-a, 5\u202f000 messages so far" in table
    assert "HX-Refresh" not in response
    await ReportRun.objects.aupdate(state=ReportRun.State.FAILED, error="it broke")
    for address in ("/reports/runs?was=live", f"/reports/runs/{run.run_id}?was=live"):
        assert (await client.get(address, headers={"HX-Request": "true"}))["HX-Refresh"] == "true"
    assert "it broke" in await text_of(client, "/reports/")


async def test_the_list_asks_for_a_new_page_after_a_run_that_no_look_saw(data: Path, log_in: Client) -> None:
    client = await log_in("reader")
    for _ in range(2):
        [address] = re.findall(r'hx-get="(/reports/runs[^"]*)"', await text_of(client, "/reports/"))
        assert "HX-Refresh" not in await client.get(address, headers={"HX-Request": "true"})
        await finished_run(data)
        assert (await client.get(address, headers={"HX-Request": "true"}))["HX-Refresh"] == "true"


async def test_while_the_stack_is_being_installed_the_page_says_so_and_runs_wait(data: Path, log_in: Client) -> None:
    (data / "reports").mkdir()
    write_json(
        data / "reports" / "install.json",
        {"state": "installing", "step": "pyspark 4.2.1", "done": 1, "total": 4, "started_at": 1, "error": None},
    )
    page = await text_of(await log_in("reader"), "/reports/")
    assert "still being installed" in page and "step 2 of 4" in page and "pyspark 4.2.1" in page
    await enqueue("traffic", 1, requested_by=None)
    assert not await ReportSchedule(data=data).step()
    assert (await ReportRun.objects.aget()).state == "queued"


async def test_of_two_who_claim_a_run_one_gets_it(data: Path) -> None:
    await enqueue("traffic", 1, requested_by=None)
    claimed = await asyncio.gather(claim_next(), claim_next())
    assert sorted(run is None for run in claimed) == [False, True]


async def test_a_process_that_ends_without_a_status_is_a_failed_run_with_its_last_words(data: Path) -> None:
    _need_stack(data)
    await enqueue("traffic", 1, requested_by=None)
    schedule = ReportSchedule(data=data, command=[sys.executable, "-c", "raise SystemExit('no such luck')"])
    assert await schedule.step()
    run, later = [run async for run in ReportRun.objects.order_by("attempt")]
    assert (run.state, run.error) == ("failed", "no such luck")
    assert (later.state, later.attempt) == ("queued", 2)


async def test_a_stopped_schedule_stops_its_run(data: Path) -> None:
    _need_stack(data)
    await enqueue("traffic", 1, requested_by=None)
    beat = data / "beat"
    code = (
        f"import pathlib, time\nwhile True: pathlib.Path({str(beat)!r}).write_text(str(time.time())); time.sleep(0.02)"
    )
    task = asyncio.create_task(ReportSchedule(data=data, command=[sys.executable, "-c", code]).step())
    while not beat.exists():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    last = beat.read_text()
    await asyncio.sleep(0.1)  # a process that still ran would write five times
    assert beat.read_text() == last
    run = await ReportRun.objects.aget()
    assert (run.state, "stopped during this run" in run.error) == ("cancelled", True)


async def test_a_run_may_have_a_range_topics_and_a_zone_of_its_own(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    asked = {
        "begin": "2026-11-01T08:30", "end": "2026-11-02T00:00", "topics": "orders, mail orders", "zone": "Asia/Tokyo",
    }  # fmt: skip
    await client.post("/reports/run", {"report": "days", "days": "7", **asked})
    run = await ReportRun.objects.aget()
    assert (run.begin_ms, run.end_ms) == (1_793_521_800_000, 1_793_577_600_000)
    assert (run.topics, run.zone) == (["orders", "mail"], "Asia/Tokyo")
    page = await text_of(client, f"/reports/runs/{run.run_id}")
    assert {"2026-11-01T08:30:00.000Z", "2026-11-02T00:00:00.000Z"} <= set(re.findall(r'datetime="([^"]+)"', page))
    assert "days of Asia/Tokyo" in page and "orders" in page


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"begin": "2026-11-01T08:30"}, "needs both times"),
        ({"begin": "2026-11-02T00:00", "end": "2026-11-01T00:00"}, "must end after it begins"),
        ({"begin": "yesterday", "end": "2026-11-01T00:00"}, "Enter a valid date/time"),
        ({"topics": "or;ders"}, "or;ders"),
        ({"topics": " ".join(f"t{number}" for number in range(51))}, "51 topics are too many"),
        ({"zone": "Mars/Base"}, "is not a time zone"),
    ],
)
async def test_a_range_topic_or_zone_that_is_none_is_refused_in_words(
    data: Path, log_in: Client, wrong: dict[str, str], words: str
) -> None:
    """S50."""
    client = await log_in("operator")
    response = await client.post("/reports/run", {"report": "days", "days": "7", **wrong})
    assert response.status_code == 400 and words in response.content.decode()
    assert await ReportRun.objects.acount() == 0


async def test_a_run_is_asked_for_again_as_it_was(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    first = await enqueue("sizes", 0, requested_by=None, range_ms=(5, 9), topics=["orders"], zone="Asia/Tokyo", now=NOW)
    await ReportRun.objects.aupdate(state=ReportRun.State.FAILED, error="it broke")
    assert "Run again" in await text_of(client, f"/reports/runs/{first.run_id}")
    assert (await client.post(f"/reports/runs/{first.run_id}/again")).status_code == 302
    run = await ReportRun.objects.exclude(pk=first.pk).aget()
    assert (run.state, run.report, run.begin_ms, run.end_ms) == ("queued", "sizes", 5, 9)
    assert (run.topics, run.zone) == (["orders"], "Asia/Tokyo")
    ingest = await enqueue("ingest", 1, requested_by=None)
    assert (await client.post(f"/reports/runs/{ingest.run_id}/again")).status_code == 400


async def test_a_waiting_run_is_stopped_at_once_and_an_ended_one_is_left(data: Path, log_in: Client) -> None:
    client = await log_in("operator")
    run = await enqueue("sizes", 1, requested_by=None)
    assert ">Stop<" in await text_of(client, f"/reports/runs/{run.run_id}")
    for _ in range(2):
        assert (await client.post(f"/reports/runs/{run.run_id}/stop")).status_code == 302
        await run.arefresh_from_db()
        assert (run.state, run.error) == ("cancelled", STOPPED)
    assert not await ReportSchedule(data=data).step()
    shells = await enqueue("sizes", 1, requested_by=None)
    await ReportRun.objects.filter(pk=shells.pk).aupdate(state=ReportRun.State.RUNNING, from_shell=True)
    response = await client.post(f"/reports/runs/{shells.run_id}/stop", follow=True)
    assert "in the shell" in response.content.decode()
    assert (await ReportRun.objects.aget(pk=shells.pk)).state == "running"


async def test_a_running_run_is_stopped_with_its_process_and_the_next_one_runs(data: Path, log_in: Client) -> None:
    _need_stack(data)
    client, run = await log_in("operator"), await enqueue("traffic", 1, requested_by=None, now=NOW)
    beat = data / "beat"
    say_who = f"import os, pathlib, time\npathlib.Path({str(beat)!r}).write_text(str(os.getpid()))"
    code = f"{say_who}\nwhile True: time.sleep(60)"
    schedule = ReportSchedule(data=data, command=[sys.executable, "-c", code])
    task = asyncio.create_task(schedule.step())
    await until(lambda: beat.exists() and beat.read_text() != "")
    child = psutil.Process(int(beat.read_text()))
    await client.post(f"/reports/runs/{run.run_id}/stop")
    assert await task
    await run.arefresh_from_db()
    assert (run.state, run.error) == ("cancelled", STOPPED)
    assert not child.is_running()
    following = ReportSchedule(data=data, command=[sys.executable, "-c", "raise SystemExit('the next one')"])
    await enqueue("traffic", 1, requested_by=None)
    assert await following.step()
    assert (await ReportRun.objects.filter(attempt=1).alatest("created_at")).error == "the next one"


async def test_after_a_restart_runs_left_open_get_their_status(data: Path) -> None:
    ended, lost = [await enqueue("traffic", 1, requested_by=None, now=NOW) for _ in range(2)]
    await ReportRun.objects.aupdate(state=ReportRun.State.RUNNING, started_at=NOW)
    folder = RunFolder.in_data(data, ended.run_id)
    folder.path.mkdir(parents=True)
    folder.write_status(RunStatus(state="succeeded", started_at=1, finished_at=2, exit_code=0, rows=5))
    await ReportSchedule(data=data).close_orphans()
    await ended.arefresh_from_db()
    await lost.arefresh_from_db()
    assert (ended.state, ended.rows) == ("succeeded", 5)
    assert (lost.state, lost.error) == ("cancelled", CUT_OFF)


async def test_a_run_that_a_killed_web_process_left_begins_again_but_not_for_ever(data: Path, log_in: Client) -> None:
    await log_in("operator")
    user = await User.objects.aget(username="operator")
    first = await enqueue("sizes", 1, requested_by=user, topics=["orders"], zone="Europe/Berlin", now=NOW)
    for _ in range(3):
        run = await claim_next()
        assert run is not None
        await ReportSchedule(data=data).close_orphans()
    runs = [run async for run in ReportRun.objects.order_by("attempt")]
    assert [(run.state, run.attempt) for run in runs] == [("cancelled", 1), ("cancelled", 2), ("cancelled", 3)]
    for run in runs[1:]:
        assert (run.report, run.topics, run.zone, run.requested_by_id) == ("sizes", ["orders"], first.zone, user.pk)
        assert (run.begin_ms, run.end_ms) == (first.begin_ms, first.end_ms)
    assert [run.error for run in runs] == [CUT_OFF, CUT_OFF, CUT_OFF_EACH_TIME]


@pytest.mark.slow
async def test_a_run_asked_for_by_button_is_computed_by_spark_and_shown(
    data: Path, log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a second run, due at the same time, shares its session; nothing of that stays behind."""
    monkeypatch.setenv("GANTRY_TEST_CLASS_ARCHIVE", "off")
    _need_stack(data)
    now_ms = int(time.time() * 1000)
    folder = data / "brokers" / "broker-a"
    write_log(folder / "store" / "commitlog", [Record(topic="orders", stored_at=now_ms - 60_000)] * 321)
    (folder / "broker.properties").write_text("brokerName=broker-a\n")
    client = await log_in("operator")
    await client.post("/reports/run", {"report": "traffic", "days": "1"})
    await enqueue("ingest", 1, requested_by=None)
    schedule = ReportSchedule(data=data)
    others = set(psutil.Process().children(recursive=True))  # what tests before this one keep running
    try:
        assert await schedule.step()
        started = [child for child in psutil.Process().children(recursive=True) if child not in others]
        assert await schedule.step()
    finally:
        await schedule.close()
    assert len(started) > 2 and psutil.wait_procs(started, timeout=WITHIN_S)[1] == []
    assert "session" not in seconds_of(data, await ReportRun.objects.aget(report="ingest", state="succeeded"))
    run = await ReportRun.objects.aget(report="traffic")
    assert "session" in seconds_of(data, run)
    assert (run.state, run.rows, run.ingested_rows, run.error) == ("succeeded", 1, 321, "")
    page = await text_of(client, f"/reports/runs/{run.run_id}")
    assert "orders" in page and "321" in page
    response = await client.get(f"/reports/runs/{run.run_id}/traffic.csv")
    body = b"".join([chunk async for chunk in response]).decode()  # type: ignore[attr-defined]
    assert list(csv.reader(io.StringIO(body)))[1][1:4] == ["orders", "normal", "321"]


def seconds_of(data: Path, run: ReportRun) -> Any:
    status = RunFolder.in_data(data, run.run_id).status()
    assert status is not None
    return status.seconds


def test_the_web_process_loads_neither_spark_nor_arrow_nor_numpy() -> None:
    code = (
        "import django, sys; django.setup(); import dashboard.asgi, dashboard.reports.schedule, dashboard.urls;"
        "print([name for name in ('pyspark', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "dashboard.settings", "GANTRY_DATA": str(django_settings.APPLIANCE.data)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WITHIN_S,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def _need_stack(data: Path) -> None:
    if not install_state(data).is_ready:
        missing("pyspark", "the report stack is not installed")
