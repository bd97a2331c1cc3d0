"""The log that the benchmark of reports makes: so many messages, over days, topics and hosts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from appliance.reports.commit_log_files import CommitLogFiles, read_range
from appliance.reports.lake.record_columns import record_batches
from tests.bench.reports.fill import BATCH, BEGIN_MS, END_MS, HOSTS, QUEUES, TOPICS, fill


def test_messages_are_spread_over_topics_queues_hosts_and_days(tmp_path: Path) -> None:
    end = fill(tmp_path, 10_001)
    log = CommitLogFiles([tmp_path / "commitlog"])
    assert log.valid_end() == end
    rows = [
        row
        for file in log.begun_files()
        for block in read_range(file, file.start, min(file.end, end))
        for batch in record_batches(block, "broker-a")
        for row in batch.select(["topic", "queue_id", "born_host", "store_timestamp", "body_bytes"]).to_pylist()
    ]
    assert len(rows) == 10_000 + BATCH
    topics = Counter(row["topic"] for row in rows)
    assert len(topics) == TOPICS and max(topics.values()) - min(topics.values()) <= BATCH
    assert {row["queue_id"] for row in rows} == set(range(QUEUES))
    assert {row["body_bytes"] for row in rows} == {128, 1024}
    assert len({row["born_host"] for row in rows}) == len(HOSTS)
    times = [round(row["store_timestamp"].timestamp() * 1000) for row in rows]
    assert times == sorted(times) and times[0] == BEGIN_MS and times[-1] < END_MS
    assert len({time // 3_600_000 for time in times}) == 72
