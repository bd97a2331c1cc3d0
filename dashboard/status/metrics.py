"""A snapshot as flat figures: key to text, moment and reason. Templates draw them, frames carry the same ones.

The texts are made here and nowhere else, so a page and the socket that keeps it alive never disagree about a unit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from dashboard.cluster import units
from dashboard.cluster.values import TopicDetail, TopicRow
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from dashboard.status.checks import Verdict, judge
from dashboard.status.metric import Figures
from dashboard.status.processes import ProcessFacts
from dashboard.status.service_metrics import put_services


def overview_figures(snapshot: Snapshot, verdict: Verdict | None = None) -> Figures:
    """The figures of the Overview."""
    verdict = verdict or judge(snapshot)
    figures = Figures(now=snapshot.at)
    for name, key in (("in_rate", "cluster.in"), ("out_rate", "cluster.out")):
        value, at, why = snapshot.known_sum(name)
        figures.put(key, units.rate(value), at, why)
    stored = snapshot.stored
    for key, number in (("stored", stored.messages if stored else None), ("topics", stored.topics if stored else None)):
        figures.put(f"cluster.{key}", units.count(number), stored.at if stored else None, snapshot.stored_why)
    answering = sum(1 for broker in snapshot.brokers if broker.is_answering)
    figures.put("cluster.brokers", f"{answering} of {len(snapshot.brokers)}", snapshot.at, snapshot.namesrv_why)
    for broker in snapshot.brokers:
        _broker(figures, broker, snapshot.at)
    for process in snapshot.processes:
        _process(figures, process)
    for index, problem in enumerate(verdict.problems):
        figures.put(f"problem.{index}.title", problem.title, snapshot.at)
        figures.put(f"problem.{index}.evidence", problem.evidence, snapshot.at)
    figures.shape = _shape(
        *(f"{broker.name} {_parts(broker)}" for broker in snapshot.brokers),
        "|",
        *(f"{process.name}/{process.role}" for process in snapshot.processes),
        "|",
        *(f"{problem.level}{problem.action}" for problem in verdict.problems),
    )
    return figures


def topic_figures(detail: TopicDetail, in_rate: float | None, why: str | None = None) -> Figures:
    """The figures of a topic's pages."""
    figures = Figures(now=detail.at)
    missing = f"{detail.troubles[0].what}: {detail.troubles[0].reason}" if detail.troubles else None
    at = None if missing else detail.at
    figures.put("topic.stored", units.count(detail.stored), at, missing)
    figures.put("topic.total", units.count(detail.put_total), at, missing)
    figures.put("topic.in", units.rate(in_rate), at, why or missing or "known from the next second on")
    never = "no message yet" if detail.put_total == 0 else "nothing is stored any more"
    figures.put("topic.last", _clock_time(detail.last_write_ms), at, never)
    for queue in detail.queues:
        figures.put(f"queue.{queue.key}.min", units.count(queue.min_offset), detail.at)
        figures.put(f"queue.{queue.key}.max", units.count(queue.max_offset), detail.at)
        figures.put(f"queue.{queue.key}.stored", units.count(queue.stored), detail.at)
        figures.put(f"queue.{queue.key}.last", _clock_time(queue.last_write_ms), detail.at, never)
    most = max((queue.stored for queue in detail.queues), default=0)
    for queue in detail.queues:
        figures.bars[f"queue.{queue.key}"] = queue.stored / most if most else 0.0
    figures.shape = _shape(*(queue.key for queue in detail.queues))
    return figures


def list_figures(rows: Sequence[TopicRow], now: float) -> Figures:
    """The figures of the topic list's rows."""
    figures = Figures(now=now)
    for row in rows:
        reading, prefix = row.figures, f"row.{row.name}"
        value = reading.value if reading is not None else None
        at, why = (reading.at, reading.why) if reading is not None else (None, None)
        figures.put(f"{prefix}.stored", units.count(value.stored if value else None), at, why)
        in_rate = value.in_rate if value is not None else None
        figures.put(f"{prefix}.in", units.rate(in_rate), at, why or "known at the next reading")
        written = value.last_write_ms if value is not None else 0
        figures.put(
            f"{prefix}.written", units.ago(written / 1000, now) if written else units.UNKNOWN, at, why or "never"
        )
    figures.shape = _shape(*(f"{row.name} {row.kind} {row.write_queues} {row.perm_text}" for row in rows))
    return figures


def _broker(figures: Figures, broker: BrokerState, now: float) -> None:
    prefix, facts, why = f"broker.{broker.name}", broker.facts, broker.why
    if facts is None:
        for name in ("in", "out", "disk", "disk.full", "log", "behind", "uptime"):
            figures.put(f"{prefix}.{name}", units.UNKNOWN, None, why)
        figures.bars[f"{prefix}.disk"] = None
        return
    first_second = why or "known from the next second on"
    figures.put(f"{prefix}.in", units.rate(facts.in_rate), facts.at, first_second if facts.in_rate is None else why)
    figures.put(f"{prefix}.out", units.rate(facts.out_rate), facts.at, first_second if facts.out_rate is None else why)
    figures.put(f"{prefix}.disk", units.percent(facts.disk_ratio), facts.at, why or "the broker does not say")
    figures.bars[f"{prefix}.disk"] = facts.disk_ratio
    figures.put(f"{prefix}.disk.full", _full_in(facts), facts.at, why or _why_no_forecast(facts))
    figures.put(f"{prefix}.log", units.size(facts.commit_log_bytes), facts.at, why)
    figures.put(f"{prefix}.behind", units.size(facts.behind_bytes), facts.at, why)
    uptime = None if facts.boot_ms is None else facts.at - facts.boot_ms / 1000
    figures.put(f"{prefix}.uptime", units.duration(uptime), facts.at, why)
    side = [lane.size for lane in facts.side_lanes]
    waiting = sum(size for size in side if size is not None) if side and None not in side else None
    figures.put(f"{prefix}.lanes.side", units.count(waiting), facts.at, why or "the broker does not say")
    put_services(figures, prefix, facts, why)
    for lane in facts.lanes:
        key = f"{prefix}.lane.{lane.name}"
        silent = why or "the broker does not say"
        figures.put(f"{key}.size", units.count(lane.size), facts.at, silent)
        figures.put(f"{key}.capacity", units.count(lane.capacity), facts.at, silent)
        figures.put(f"{key}.wait", units.milliseconds(lane.head_wait_ms), facts.at, silent)
        is_known = lane.size is not None and lane.capacity
        figures.bars[key] = lane.size / lane.capacity if is_known else None  # type: ignore[operator]


def _parts(broker: BrokerState) -> str:
    """What stands on a broker's card, for the shape: it changes when one of ours takes the place of another."""
    facts = broker.facts
    return (
        ""
        if facts is None
        else f"{len(facts.lanes)} {facts.services.settings_ignored != ''} {facts.disk_text != ''} {facts.disk_marks}"
    )


def _full_in(facts: BrokerFacts) -> str:
    """When the broker will refuse writes, if its disk goes on filling up as it does now."""
    return units.UNKNOWN if facts.disk_full_in_s is None else f"full in {units.duration(round(facts.disk_full_in_s))}"


def _why_no_forecast(facts: BrokerFacts) -> str:
    return "known after a minute" if facts.disk_growth is None else "the disk is not filling up"


def _process(figures: Figures, process: ProcessFacts) -> None:
    prefix = f"process.{process.name}"
    figures.put(f"{prefix}.state", process.state, process.at)
    figures.put(f"{prefix}.pid", str(process.pid) if process.pid else units.UNKNOWN, process.at, process.why)
    figures.put(f"{prefix}.restarts", units.count(process.restarts), process.at)
    figures.put(f"{prefix}.cpu", units.percent(process.cpu_ratio), process.at, process.why)
    figures.put(f"{prefix}.rss", units.size(process.rss_bytes), process.at, process.why)
    uptime = None if process.started_at is None or process.pid is None else process.at - process.started_at
    figures.put(f"{prefix}.uptime", units.duration(None if uptime is None else int(uptime)), process.at, process.why)


def _clock_time(at_ms: int) -> str:
    text = units.moment(at_ms)
    return text if text == units.UNKNOWN else text[:-4]


def _shape(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
