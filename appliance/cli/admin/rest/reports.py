"""`gantry admin reports`: what the dashboard computes, and when. `gantry report` computes one here."""

from __future__ import annotations

from appliance.cli.admin.options import not_negative, positive
from appliance.cli.admin.rest.calls import Call
from appliance.cli.admin.rest.fields import Field
from appliance.cli.admin.rest.values import number

REPORT = Field("report", "REPORT", "its name, as `reports list` shows it", is_needed=True)
DAYS = Field("days", "--days", "how far back: 1, 7, 30 or 90", positive)
ZONE = Field("zone", "--zone", "whose days are meant: Europe/Berlin (default: UTC)")
CRON = Field("cron", "--cron", 'when, as a line of cron: "0 6 * * mon-fri"')
RUN = "/reports/runs/{run}"

CALLS = {
    "reports": {
        "list": Call("reports there are", "GET", "/reports", rows="reports",
                     columns=("name", "title", "last_run", "last_result")),
        "runs": Call(
            "runs, the newest first", "GET", "/reports/runs",
            query=(
                Field("report", "--report", "only of this one"),
                Field("offset", "--skip", "leave out so many", not_negative),
                Field("limit", "--limit", "show at most so many (default: 25)", positive),
            ),
            rows="runs", columns=("id", "report", "state", "begin", "end", "created_at", "duration_s", "rows", "error"),
        ),
        "run": Call(
            "have a report computed", "POST", "/reports/runs",
            (
                REPORT, DAYS, Field("begin", "--from", "instead of --days: 2026-11-21T00:00:00Z"),
                Field("end", "--to", "the first moment that is left out"),
                Field("topics", "--topic", "only this topic; repeatable", kind="many"), ZONE,
            ),
        ),
        "show": Call("one run", "GET", RUN),
        "stop": Call("stop a run", "POST", RUN + "/stop"),
        "schedule": Call("when reports run by themselves", "GET", "/reports/schedule"),
        "set-schedule": Call(
            "change when reports run; what is not given stays", "PUT", "/reports/schedule",
            (
                Field("interval_minutes", "--every", "minutes: 15, 60, 360, 1440; 0 is never", not_negative), DAYS,
                Field("reports", "--report", "one that runs; repeatable", kind="many"), CRON, ZONE,
            ),
            before=("/reports/schedule", ""),
        ),
        "promises": Call("how far behind groups may be", "GET", "/reports/promises"),
        "promise": Call(
            "say how far behind a group may be", "PUT", "/reports/promises",
            (
                Field("group", "--group", "its name (default: all others)"),
                Field("seconds", "--seconds", "so many seconds", number, nothing="--no-promise", is_needed=True),
            ),
        ),
        "weekly": Call("the summary of a week by mail", "GET", "/reports/weekly"),
        "set-weekly": Call(
            "change when the weekly summary is sent; what is not given stays", "PUT", "/reports/weekly",
            (
                Field("channels", "--channel", "the id of a mail channel; repeatable", positive, kind="many",
                      nothing="--no-channel"), CRON, ZONE,
            ),
            before=("/reports/weekly", ""),
        ),
        "send-weekly": Call("send the summary of the last seven days now", "POST", "/reports/weekly/send"),
    },
}  # fmt: skip
