"""The same elsewhere: a run's result and its messages in DuckDB and in a notebook, and the run from a shell."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from appliance.reports.catalogue import REPORTS
from appliance.reports.runs import RunFolder
from appliance.settings.lake_place import TABLES, StoreAddress, place_of
from dashboard.forms.shell_commands import curl_line
from dashboard.models.reports import ReportRun

MESSAGES = "messages"

DUCKDB = """\
SELECT topic, count(*) AS messages, sum(size_bytes) AS stored_bytes
FROM delta_scan({lake})
WHERE store_timestamp >= {begin} AND store_timestamp < {end}{topics} GROUP BY topic ORDER BY messages DESC"""

RESULT_ALONE = """\
# pip install pyarrow
import pyarrow.parquet as pq

result = pq.read_table({result})  # what this page shows, whole; .to_pandas() makes a frame of it
print(result.slice(0, 5).to_pylist())"""

NOTEBOOK = """\
# pip install deltalake pyarrow
from datetime import UTC, datetime

import pyarrow.parquet as pq
from deltalake import DeltaTable

result = pq.read_table({result})  # what this page shows, whole; .to_pandas() makes a frame of it
print(result.slice(0, 5).to_pylist())

# The messages below it.
begin, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in ({begin}, {end}))
messages = DeltaTable({lake}).to_pyarrow_table(
    columns=["broker_name", "topic", "store_timestamp", "size_bytes"],
    filters=[("store_timestamp", ">=", begin), ("store_timestamp", "<", end)],
)
for row in messages.group_by("topic").aggregate([("size_bytes", "sum"), ("size_bytes", "count")]).to_pylist():
    print(row["topic"], row["size_bytes_count"], row["size_bytes_sum"])"""


@dataclass(frozen=True, slots=True)
class Snippet:
    """Something to copy. key: of its element on the page."""

    key: str
    title: str
    text: str


def snippets(run: ReportRun, data: Path, place: str = "") -> list[Snippet]:
    """How other tools read what the run read and what it wrote, on the machine that has the data folder.

    place: the setting `report_lake`. Of a lake in a store the notebook has the result alone, and in HDFS, to
    which DuckDB knows no way, its line too.
    """
    result = str(RunFolder.in_data(data, run.run_id).result("parquet", run.report))
    found = place_of(place)
    above = found.address if isinstance(found, StoreAddress) else str(found or data / "reports")
    lake = f"{above}/{TABLES}/{MESSAGES}"
    notebook = NOTEBOOK.format(result=repr(result), lake=repr(lake), begin=run.begin_ms, end=run.end_ms)
    if isinstance(found, StoreAddress):
        notebook = RESULT_ALONE.format(result=repr(result))
    is_hdfs = isinstance(found, StoreAddress) and found.scheme == "hdfs"
    if MESSAGES not in REPORTS[run.report].tables or is_hdfs:
        return [
            Snippet("duckdb", gettext("DuckDB, in a shell"), _duckdb(f"SELECT * FROM {_quoted(result)}")),
            Snippet("notebook", gettext("In a notebook"), RESULT_ALONE.format(result=repr(result))),
        ]
    topics = f" AND topic IN ({', '.join(map(_quoted, run.topics))})" if run.topics else ""
    begin, end = (f"make_timestamptz({at_ms * 1000})" for at_ms in (run.begin_ms, run.end_ms))
    sql = DUCKDB.format(lake=_quoted(lake), begin=begin, end=end, topics=topics)
    if isinstance(found, StoreAddress):
        sql = _secret(found.options) + sql
    return [
        Snippet("duckdb", gettext("DuckDB, in a shell"), _duckdb(sql)),
        Snippet("notebook", gettext("In a notebook"), notebook),
    ]


def run_commands(request: HttpRequest, run: ReportRun) -> list[str]:
    """The same run from a shell: `gantry report`, and curl."""
    if run.report not in REPORTS:
        return []
    words: list[str] = ["gantry", "report", run.report, "--from", _moment(run.begin_ms), "--to", _moment(run.end_ms)]
    for topic in run.topics:
        words += ["--topic", topic]
    words += ["--zone", run.zone] if run.zone != "UTC" else []
    body: dict[str, Any] = {"report": run.report, "since": _moment(run.begin_ms), "until": _moment(run.end_ms)}
    body |= {"topics": list(run.topics)} if run.topics else {}
    body |= {"zone": run.zone} if run.zone != "UTC" else {}
    url = request.build_absolute_uri(reverse("api:run_report"))
    return [shlex.join(words), curl_line(url, body)]


def _secret(options: str) -> str:
    """Where the S3 server is, in DuckDB's words; it finds keys where we do, so none stand on the page."""
    given = {name: values[-1] for name, values in parse_qs(options).items()}
    parts = ["TYPE s3", "PROVIDER credential_chain"]
    if "region" in given:
        parts.append(f"REGION {_quoted(given['region'])}")
    if "endpoint_override" in given:
        is_plain = given.get("scheme", "https") == "http"
        parts += [f"ENDPOINT {_quoted(given['endpoint_override'])}", "URL_STYLE 'path'"]
        parts += ["USE_SSL false"] if is_plain else []
    return f"CREATE SECRET gantry ({', '.join(parts)});\n"


def _duckdb(sql: str) -> str:
    """The shell's line. SQL has many single quotes, so it stands in double ones where these leave it as it is."""
    return f"duckdb -c {shlex.quote(sql)}" if re.search(r'["$`\\!]', sql) else f'duckdb -c "{sql}"'


def _quoted(text: str) -> str:
    """A text of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
