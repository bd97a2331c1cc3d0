"""A message's life as steps on one line of time: sent, stored, handled by each group, each try. Pure.

Times are of the clients' own clocks (sent, handled) and of the broker's (stored); where they disagree, a step may stand
before its cause, and is shown as told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dashboard.cluster import units
from dashboard.language.sentences import gettext
from dashboard.limits.names import NameLimit
from gantrymq.client.produce.trace_records import ConsumeOutcome, TraceKind, TraceRecord
from gantrymq.message.model import MessageExt

STEPS_MAX = 200
WIDTH_MIN = 0.8  # percent: what took no time is a mark


@dataclass(frozen=True, slots=True)
class Step:
    """One bar. took_ms is None while the end is not known; left and width are percent of the whole time."""

    what: str
    who: str
    at_ms: int
    took_ms: int | None
    outcome: str
    is_bad: bool
    left: str = "0"
    width: str = "0"

    @property
    def took(self) -> str:
        return units.milliseconds(self.took_ms)


def seen_by(limit: NameLimit, records: Sequence[TraceRecord]) -> list[TraceRecord]:
    """What an account may know of it: what other groups did with the message is left out, another sender is not named.

    An end without a group (clients of before 4.9) belongs to its begin.
    """
    if not limit.is_limited:
        return list(records)
    begun = {record.request_id: record.group for record in records if record.kind is TraceKind.SUB_BEFORE}
    found = []
    for record in records:
        group = record.group or begun.get(record.request_id, "")
        if group and limit.allows(group):
            found.append(record)
        elif record.kind in (TraceKind.PUB, TraceKind.END_TRANSACTION):
            found.append(replace(record, group="", client_host=""))
    return found


def steps_of(message: MessageExt | None, records: Sequence[TraceRecord]) -> tuple[Step, ...]:
    """The steps in the order of time, with their bars; without a message what clients told alone."""
    steps = [Step(gettext("Stored"), message.broker_name, message.store_timestamp, 0, "", False)] if message else []
    begun = {record.request_id for record in records if record.kind is TraceKind.SUB_BEFORE}
    ends = {record.request_id: record for record in records if record.kind is TraceKind.SUB_AFTER}
    for record in records[:STEPS_MAX]:
        if record.kind is TraceKind.PUB:
            outcome = "" if record.is_success else "failed"
            steps.append(
                Step(gettext("Sent"), _who(record), record.time_ms, record.cost_ms, outcome, not record.is_success)
            )
        elif record.kind is TraceKind.SUB_BEFORE:
            steps.append(_handled(record, ends.get(record.request_id)))
        elif record.kind is TraceKind.SUB_AFTER and record.request_id not in begun:  # its begin expired
            steps.append(_ended(record))
        elif record.kind is TraceKind.END_TRANSACTION:
            state = record.transaction_state.removesuffix("_MESSAGE").lower()
            steps.append(
                Step(gettext("Transaction ended"), _who(record), record.time_ms, 0, state, state == "rollback")
            )
    if not steps:
        return ()
    steps.sort(key=lambda step: step.at_ms)
    begin = steps[0].at_ms
    whole = max(1, max(step.at_ms + (step.took_ms or 0) for step in steps) - begin)
    return tuple(_placed(step, begin, whole) for step in steps)


def _handled(begun: TraceRecord, ended: TraceRecord | None) -> Step:
    what = gettext("Handled, try %(value)s") % {"value": begun.retry_times + 1}
    if ended is None:
        return Step(
            what,
            _who(begun),
            begun.time_ms,
            None,
            gettext("no end reported: it is running, or its client disconnected"),
            False,
        )
    return Step(what, _who(begun), begun.time_ms, ended.cost_ms, outcome_of(ended), not ended.is_success)


def _ended(record: TraceRecord) -> Step:
    began_ms = record.time_ms - record.cost_ms
    return Step(gettext("Handled"), _who(record), began_ms, record.cost_ms, outcome_of(record), not record.is_success)


def outcome_of(ended: TraceRecord) -> str:
    """How handling ended, in a word: success, exception, timeout …"""
    name = ConsumeOutcome(ended.outcome).name.lower().replace("_", " ") if ended.outcome in set(ConsumeOutcome) else ""
    return "success" if ended.is_success else name if name not in ("", "success") else "failed"


def _who(record: TraceRecord) -> str:
    return (
        (gettext("%(group)s at %(client_host)s") % {"group": record.group, "client_host": record.client_host})
        if record.client_host
        else record.group
    )


def _placed(step: Step, begin: int, whole: int) -> Step:
    left = min((step.at_ms - begin) / whole * 100, 100 - WIDTH_MIN)
    width = max(WIDTH_MIN, min((step.took_ms or 0) / whole * 100, 100 - left))
    return Step(step.what, step.who, step.at_ms, step.took_ms, step.outcome, step.is_bad, f"{left:.2f}", f"{width:.2f}")
