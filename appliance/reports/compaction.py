"""Makes one Parquet file of several small ones: the work of one Spark task, as range_reader.py is.

Which files belong together is decided here, too, without any reading: small files of one day, in the order of the log.
A day that may still get rows is left alone, so that each is rewritten a few times at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa

from appliance.reports.lake_files import LakeFiles
from appliance.reports.lake_state import LakeFile, span_of
from appliance.reports.range_reader import PARQUET, StagedFile

ROWS_MAX = 2_000_000  # of the file that is made; as many as a range reader has in memory
FILES_MIN = 4  # fewer are not worth it
SMALL_SHARE = 0.5  # of ROWS_MAX: larger files stay as they are
_DAY_MS = 86_400_000
SETTLED_MS = 3_600_000  # so long after its end a day of UTC gets no rows any more, but for late ones


def groups_of(files: Sequence[LakeFile], now_ms: int, rows_max: int = ROWS_MAX) -> list[list[LakeFile]]:
    """The files that are to become one each; every group is of one day."""
    by_day: defaultdict[str, list[LakeFile]] = defaultdict(list)
    for file in files:
        is_over = (file.max_store_timestamp // _DAY_MS + 1) * _DAY_MS + SETTLED_MS <= now_ms
        if is_over and file.rows <= rows_max * SMALL_SHARE:
            by_day[file.date].append(file)
    groups: list[list[LakeFile]] = []
    for _, small in sorted(by_day.items()):
        group: list[LakeFile] = []
        for file in sorted(small, key=lambda file: file.span):
            if sum(one.rows for one in group) + file.rows > rows_max:
                groups.append(group)
                group = []
            group.append(file)
        groups.append(group)
    return [group for group in groups if len(group) >= FILES_MIN]


def merge(paths: Sequence[str], place: LakeFiles) -> StagedFile:
    """Stage one file with the rows of all, in the order in which range_reader.py writes them. Paths are the lake's."""
    pa.set_cpu_count(1)
    tables = [place.read(path) for path in paths]
    table = pa.concat_tables(tables, promote_options="default")  # older files lack the newest columns
    is_log = "physical_offset" in table.column_names
    keys = [("topic", "ascending"), ("physical_offset", "ascending")] if is_log else [("at_ms", "ascending")]
    table = table.sort_by(keys)
    date = paths[0].split("/")[1].removeprefix("date=")
    spans = [span_of(path) for path in paths]
    span = min(begin for begin, _ in spans), max(end for _, end in spans)
    name, size_bytes = place.stage(table, date, span, PARQUET if is_log else {"compression": "zstd"})
    stored = table["store_timestamp" if is_log else "at_ms"].to_numpy()
    return StagedFile(name, date, table.num_rows, size_bytes, int(stored.min()), int(stored.max()))
