"""Takes out of a lake what a promotion cut from its broker's log, to the record.

A lake may have read messages that the master took and no slave had when it was lost. Only an epoch of the log that is
there now explains a cut: without one, another record in the place of the last one that was read is an error, as ever
(ingest.py). Nothing is read anew, and one commit takes the rows out and says where the lake ends then.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.lake.broker_lake import Lake
from appliance.reports.runner.standing import Epoch

logger = logging.getLogger(__name__)


def cut_to_log(lake: Lake, log: CommitLogFiles, epochs: Sequence[Epoch]) -> int:
    """Have the lake end where its log and the one that is there now part; return how many rows went. ReportError.

    Call it inside `writing()`. Nothing is changed where the last record is there, or where no epoch tells why not.
    """
    mark = lake.reading().last
    files = log.begun_files()
    if mark is None or not files or mark[0] < files[0].start or log.mark_at(mark[0]) == mark:
        return 0
    for epoch in reversed(epochs[1:]):
        if epoch.start > mark[0]:
            continue
        last = lake.last_below(epoch.start)
        found = log.mark_at(last[0]) if last is not None else None
        if last is None or last[0] < files[0].start or (found is not None and found.store_timestamp == last[1]):
            gone = lake.cut(epoch.start, found)
            facts = {"event": "report_lake_cut", "broker": lake.broker_name, "epoch": epoch.number, "rows": gone}
            logger.warning("messages that a promotion cut from the log are removed from the reports", extra=facts)
            return gone
    return 0
