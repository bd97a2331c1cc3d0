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
    kind: TraceKind | None = None  # None: the broker stored it
    left: str = "0"
    width: str = "0"
    lane: str = ""  # the consumer group that handled it; "" is before that: the sender's, or the broker's
    after_ms: int = 0  # since the first step

    @property
    def took(self) -> str:
        """Clients report whole milliseconds: of less nothing more is known."""
        if self.kind in (None, TraceKind.END_TRANSACTION):
            return ""
        return gettext("< 1 ms") if self.took_ms == 0 else units.milliseconds(self.took_ms)

    @property
    def after(self) -> str:
        return f"+{units.milliseconds(self.after_ms)}"


@dataclass(frozen=True, slots=True)
class Lane:
    """The steps of one consumer group, its tries in the order of time; or, without a name, all before them.

    waited: from the message's store time to the first try; "" when one of the two is not known.
    """

    name: str
    steps: tuple[Step, ...]
    waited: str = ""


def lanes_of(steps: Sequence[Step]) -> list[Lane]:
    """The steps as a waterfall: the sender and the broker first, then each group, the one that began first first."""
    stored_ms = next((step.at_ms for step in steps if step.kind is None), None)
    names = dict.fromkeys(step.lane for step in sorted(steps, key=lambda step: (step.lane != "", step.at_ms)))
    found = []
    for name in names:
        own = tuple(step for step in steps if step.lane == name)
        waited = units.milliseconds(max(0, own[0].at_ms - stored_ms)) if name and stored_ms is not None else ""
        found.append(Lane(name, own, waited))
    return found


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
            told = _who(record), record.time_ms, record.cost_ms, outcome, not record.is_success, record.kind
            steps.append(Step(gettext("Sent"), *told))
        elif record.kind is TraceKind.SUB_BEFORE:
            steps.append(_handled(record, ends.get(record.request_id)))
        elif record.kind is TraceKind.SUB_AFTER and record.request_id not in begun:  # its begin expired
            steps.append(_ended(record))
        elif record.kind is TraceKind.END_TRANSACTION:
            state = record.transaction_state.removesuffix("_MESSAGE").lower()
            ended = _who(record), record.time_ms, 0, state, state == "rollback", record.kind
            steps.append(Step(gettext("Transaction ended"), *ended))
    if not steps:
        return ()
    steps.sort(key=lambda step: (step.at_ms, step.kind is not TraceKind.PUB))  # what is stored was sent first
    begin = steps[0].at_ms
    whole = max(1, max(step.at_ms + (step.took_ms or 0) for step in steps) - begin)
    return tuple(_placed(step, begin, whole) for step in steps)


def _handled(begun: TraceRecord, ended: TraceRecord | None) -> Step:
    what = gettext("Handled, try %(value)s") % {"value": begun.retry_times + 1}
    if ended is None:
        still = gettext("no end reported: it is running, or its client disconnected")
        return Step(what, _who(begun), begun.time_ms, None, still, False, begun.kind, lane=begun.group)
    return Step(
        what,
        _who(begun),
        begun.time_ms,
        ended.cost_ms,
        outcome_of(ended),
        not ended.is_success,
        begun.kind,
        lane=begun.group,
    )


def _ended(record: TraceRecord) -> Step:
    began_ms = record.time_ms - record.cost_ms
    outcome, is_bad = outcome_of(record), not record.is_success
    return Step(
        gettext("Handled"), _who(record), began_ms, record.cost_ms, outcome, is_bad, record.kind, lane=record.group
    )


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
    return replace(step, left=f"{left:.2f}", width=f"{width:.2f}", after_ms=step.at_ms - begin)
