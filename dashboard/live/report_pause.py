"""Has report runs pause while requests wait in a broker: the runs read the machine's disk and use its cores, too."""

from __future__ import annotations

import asyncio
import logging

from django.conf import settings

from appliance.reports.runs import ask_for_pause
from dashboard.status.board import Snapshot

logger = logging.getLogger(__name__)


def longest_wait_ms(snapshot: Snapshot) -> float:
    """What a request has waited in a lane of a broker; 0 when none waits, or none says so."""
    facts = [broker.facts for broker in snapshot.brokers if broker.is_answering and broker.facts is not None]
    return max((lane.head_wait_ms or 0.0 for each in facts for lane in each.lanes), default=0.0)


async def pause_reports(snapshot: Snapshot) -> None:
    """Ask for a pause if a lane is over the mark."""
    mark_ms = settings.APPLIANCE.report_pause_ms
    if not mark_ms or longest_wait_ms(snapshot) < mark_ms:
        return
    try:
        await asyncio.to_thread(ask_for_pause, settings.APPLIANCE.data)
    except OSError as refusal:
        logger.warning("reports not paused", extra={"event": "report_pause_failed", "error": str(refusal)})
