"""How much a session will have to count, as far as can be told before it starts: its JVM is set up for that."""

from __future__ import annotations

from collections.abc import Iterable

from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.errors import ReportError
from appliance.reports.lake.lakes import Lakes
from appliance.reports.runner.broker_folders import BrokerFolder

ROWS_LARGE = 5_000_000
BYTES_A_ROW = 256  # of what is not read yet: small messages


def is_large(brokers: Iterable[BrokerFolder], lakes: Lakes) -> bool:
    """Whether the lakes, with what is still unread in the logs, have so many rows that counting them outweighs a start.

    Of the log only whole files count: the last one is made long before it is full.
    """
    try:
        rows = sum(file.rows for file in lakes.messages.files())
    except ReportError:  # the run itself says what is wrong, in words
        return False
    for broker in brokers:
        if not broker.has_log:
            continue
        try:
            read_to = lakes.of_broker(broker.broker_name).position()
            files = CommitLogFiles(broker.commit_log_folders).files()
        except ReportError:
            continue
        if files:
            rows += max(0, files[-1].start - max(files[0].start, read_to or 0)) // BYTES_A_ROW
    return rows >= ROWS_LARGE
