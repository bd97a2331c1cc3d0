"""A snapshot as flat metrics: key to text, moment and reason. Templates and frames show the same ones.

The texts are made here and nowhere else, so a page and the socket that keeps it alive never disagree about a unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.cluster import units
from dashboard.cluster.values import TopicDetail, TopicSummary
from dashboard.language.sentences import gettext, joined
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from dashboard.status.cluster_metrics import put_broker, put_totals
from dashboard.status.disk_metrics import put_disk
from dashboard.status.metric import Metrics, shape_of
from dashboard.status.processes import ProcessFacts
from dashboard.status.readers import Readers
from dashboard.status.services import Services
from dashboard.status.slave_metrics import put_slaves
from dashboard.status.verdict import Verdict, judge
from dashboard.status.words import accounts_in_words, in_words, switch_in_words


def put_services(metrics: Metrics, prefix: str, facts: BrokerFacts, why: str | None) -> None:
    """Add one broker's services under `prefix`."""
    services, at, silent = facts.services, facts.at, why or gettext("the broker does not report it")

    def put(name: str, text: str, reason: str = silent) -> None:
        metrics.put(f"{prefix}.{name}", text, at, reason)

    all_, known = services.name_servers_all, services.name_servers_known
    put(
        "namesrv",
        units.UNKNOWN
        if known is None or all_ is None
        else gettext("%(known)s of %(all)s") % {"known": known, "all": all_},
    )
    put("connections", units.count(services.connections))
    put("parked", units.count(services.connections_parked))
    put("held", units.count(services.held_pulls))
    put("tx.pending", units.count(services.transactions_pending))
    put("tx.checked", _ago(services.transactions_checked_ms, at), why or gettext("no round of checks yet"))
    put("timer.pending", units.count(services.timers_pending))
    put("timer.next", _in(services.timer_next_due_ms, at), why or gettext("nothing is waiting"))
    put("timer.behind", units.milliseconds(services.timer_behind_ms))
    put("rejected", units.count(services.rejected))
    put("expired", units.count(services.expired))
    put("saved", units.UNKNOWN if all_ is None else joined(services.tables_not_saved) or gettext("all"))
    put("suspended", units.count(services.suspensions))
    put("disagreeing", units.count(services.disagreements))
    put("slaves", _slaves(services))
    put("tls", in_words(services.tls) or units.UNKNOWN)
    put("fast_path", switch_in_words(services.fast_path) or units.UNKNOWN)
    put("accounts", accounts_in_words(services.accounts) or units.UNKNOWN)


def _slaves(services: Services) -> str:
    if not services.role:
        return units.UNKNOWN
    in_sync = sum(slave.in_sync for slave in services.slaves)
    if not services.slaves:
        return gettext("none")
    return gettext("%(count)s of %(all)s in sync") % {"count": in_sync, "all": len(services.slaves)}


def _ago(at_ms: int | None, now: float) -> str:
    return units.ago(at_ms / 1000, now) if at_ms else units.UNKNOWN


def _in(at_ms: int | None, now: float) -> str:
    """A due time as distance: "in 3 s", "now" when it has come."""
    if not at_ms:
        return units.UNKNOWN
    left = at_ms / 1000 - now
    return (
        gettext("in %(time)s") % {"time": units.duration(int(left) or round(left, 1))} if left > 0 else gettext("now")
    )


def overview_metrics(snapshot: Snapshot, verdict: Verdict | None = None) -> Metrics:
    """The metrics of the Overview."""
    verdict = verdict or judge(snapshot)
    metrics = Metrics(now=snapshot.at)
    put_totals(metrics, snapshot)
    for broker in snapshot.brokers:
        _broker(metrics, broker, snapshot.at)
        put_broker(metrics, broker, snapshot)
        put_slaves(metrics, broker, snapshot)
    for process in snapshot.processes:
        _process(metrics, process)
    for index, problem in enumerate(verdict.problems):
        metrics.put(f"problem.{index}.title", problem.title, snapshot.at)
        metrics.put(f"problem.{index}.evidence", problem.evidence, snapshot.at)
    metrics.shape = shape_of(
        *(f"{broker.name} {_parts(broker)}" for broker in snapshot.brokers),
        "|",
        *(f"{process.name}/{process.role}" for process in snapshot.processes),
        "|",
        *(f"{problem.level}{problem.action}{problem.link}{problem.is_acknowledged}" for problem in verdict.problems),
        f"| {snapshot.muted}",
    )
    return metrics


def topic_metrics(detail: TopicDetail, in_rate: float | None, why: str | None = None) -> Metrics:
    """The metrics of a topic's pages."""
    metrics = Metrics(now=detail.at)
    missing = f"{detail.failures[0].what}: {detail.failures[0].reason}" if detail.failures else None
    at = None if missing else detail.at
    metrics.put("topic.stored", units.count(detail.stored), at, missing)
    metrics.put("topic.total", units.count(detail.put_total), at, missing)
    metrics.put("topic.in", units.rate(in_rate), at, why or missing or gettext("known in a second"))
    never = gettext("no message yet") if detail.put_total == 0 else gettext("nothing is stored any more")
    metrics.put("topic.last", _clock_time(detail.last_write_ms), at, never)
    silent = {failure.what: failure.reason for failure in detail.failures}
    for queue in detail.queues:  # those of a silent broker are what it told last
        broker_why = silent.get(queue.broker_name)
        seen_at = detail.read_at.get(queue.broker_name, detail.at)
        metrics.put(f"queue.{queue.key}.min", units.count(queue.min_offset), seen_at, broker_why)
        metrics.put(f"queue.{queue.key}.max", units.count(queue.max_offset), seen_at, broker_why)
        metrics.put(f"queue.{queue.key}.stored", units.count(queue.stored), seen_at, broker_why)
        metrics.put(f"queue.{queue.key}.last", _clock_time(queue.last_write_ms), seen_at, broker_why or never)
    most = max((queue.stored for queue in detail.queues), default=0)
    for queue in detail.queues:
        metrics.bars[f"queue.{queue.key}"] = queue.stored / most if most else 0.0
    metrics.shape = shape_of(*(queue.key for queue in detail.queues))
    return metrics


def topic_list_metrics(rows: Sequence[TopicSummary], now: float, readers: Mapping[str, Readers]) -> Metrics:
    """The metrics of the topic list's rows."""
    metrics = Metrics(now=now)
    for row in rows:
        reading, prefix = row.metrics, f"row.{row.name}"
        value = reading.value if reading is not None else None
        at, why = (reading.at, reading.why) if reading is not None else (None, None)
        metrics.put(f"{prefix}.stored", units.count(value.stored if value else None), at, why)
        in_rate = value.in_rate if value is not None else None
        metrics.put(f"{prefix}.in", units.rate(in_rate), at, why or gettext("known at the next reading"))
        written = value.last_write_ms if value is not None else 0
        metrics.put(
            f"{prefix}.written",
            units.ago(written / 1000, now) if written else units.UNKNOWN,
            at,
            why or gettext("never"),
        )
        _readers(metrics, prefix, readers.get(row.name), why)
    metrics.shape = shape_of(
        *(f"{row.name} {row.kind} {row.read_queues} {row.write_queues} {row.perm_text}" for row in rows)
    )
    return metrics


def _readers(metrics: Metrics, prefix: str, readers: Readers | None, silent: str | None) -> None:
    """The groups that read a topic, and the lag of the worst. They are looked at in turn: their age is no fault.

    silent: why its broker told nothing of late; then no group in sight is not none.
    """
    out_rate = readers.out_rate if readers is not None else None
    metrics.put(f"{prefix}.out", units.rate(out_rate), metrics.now, gettext("no group is seen consuming it"))
    if readers is None and silent:
        metrics.put(f"{prefix}.groups", units.UNKNOWN, None, silent)
        metrics.put(f"{prefix}.lag", units.UNKNOWN, None, silent)
        return
    if readers is None:
        nothing = gettext("no known group has an offset in it")
        metrics.put(f"{prefix}.groups", units.count(0), metrics.now, nothing)
        metrics.put(f"{prefix}.lag", units.UNKNOWN, None, nothing)
        return
    late = "" if not (readers.lag and readers.lag_ms) else f" · {units.milliseconds(readers.lag_ms)}"
    metrics.put(f"{prefix}.groups", units.count(readers.groups), metrics.now, None)
    metrics.put(f"{prefix}.lag", f"{units.count(readers.lag)}{late}", metrics.now, None)


def _broker(metrics: Metrics, broker: BrokerState, now: float) -> None:
    prefix, facts, why = f"broker.{broker.name}", broker.facts, broker.why
    if facts is None:
        for name in ("in", "out", "disk", "disk.full", "log", "behind", "uptime"):
            metrics.put(f"{prefix}.{name}", units.UNKNOWN, None, why)
        metrics.bars[f"{prefix}.disk"] = None
        return
    first_second = why or gettext("known in a second")
    metrics.put(f"{prefix}.in", units.rate(facts.in_rate), facts.at, first_second if facts.in_rate is None else why)
    metrics.put(f"{prefix}.out", units.rate(facts.out_rate), facts.at, first_second if facts.out_rate is None else why)
    metrics.put(
        f"{prefix}.disk", units.percent(facts.disk_ratio), facts.at, why or gettext("the broker does not report it")
    )
    metrics.bars[f"{prefix}.disk"] = facts.disk_ratio
    metrics.put(f"{prefix}.disk.full", _full_in(facts), facts.at, why or _why_no_forecast(facts))
    metrics.put(f"{prefix}.log", units.size(facts.commit_log_bytes), facts.at, why)
    put_disk(metrics, prefix, facts, why)
    metrics.put(f"{prefix}.behind", units.size(facts.behind_bytes), facts.at, why)
    uptime = None if facts.boot_ms is None else facts.at - facts.boot_ms / 1000
    metrics.put(f"{prefix}.uptime", units.duration(uptime), facts.at, why)
    side = [lane.size for lane in facts.side_lanes]
    waiting = sum(size for size in side if size is not None) if side and None not in side else None
    metrics.put(f"{prefix}.lanes.side", units.count(waiting), facts.at, why or gettext("the broker does not report it"))
    put_services(metrics, prefix, facts, why)
    for lane in facts.lanes:
        key = f"{prefix}.lane.{lane.name}"
        silent = why or gettext("the broker does not report it")
        metrics.put(f"{key}.size", units.count(lane.size), facts.at, silent)
        metrics.put(f"{key}.capacity", units.count(lane.capacity), facts.at, silent)
        metrics.put(f"{key}.wait", units.milliseconds(lane.head_wait_ms), facts.at, silent)
        is_known = lane.size is not None and lane.capacity
        metrics.bars[key] = lane.size / lane.capacity if is_known else None  # type: ignore[operator]


def _parts(broker: BrokerState) -> str:
    """What stands on a broker's card, for the shape: a RocketMQ broker tells less than a GantryMQ broker."""
    facts = broker.facts
    if facts is None:
        return ""
    services = facts.services
    slaves = " ".join(slave.address for slave in services.slaves)
    return (
        f"{broker.address} {len(facts.lanes)} {services.settings_ignored != ''} {facts.disk_text != ''} "
        f"{facts.disk_marks} {services.copying is not None} {slaves}"
    )


def _full_in(facts: BrokerFacts) -> str:
    """When the broker will refuse writes, if its disk goes on filling up as it does now."""
    return (
        units.UNKNOWN
        if facts.disk_full_in_s is None
        else gettext("full in %(time)s") % {"time": units.duration(round(facts.disk_full_in_s))}
    )


def _why_no_forecast(facts: BrokerFacts) -> str:
    return gettext("not known yet") if facts.disk_growth is None else gettext("the disk is not filling up")


def _process(metrics: Metrics, process: ProcessFacts) -> None:
    prefix = f"process.{process.name}"
    metrics.put(f"{prefix}.state", in_words(process.state), process.at)
    metrics.put(f"{prefix}.pid", str(process.pid) if process.pid else units.UNKNOWN, process.at, process.why)
    metrics.put(f"{prefix}.restarts", units.count(process.restarts), process.at)
    metrics.put(f"{prefix}.cpu", units.percent(process.cpu_ratio), process.at, process.why)
    metrics.put(f"{prefix}.rss", units.size(process.rss_bytes), process.at, process.why)
    uptime = None if process.started_at is None or process.pid is None else process.at - process.started_at
    metrics.put(f"{prefix}.uptime", units.duration(None if uptime is None else int(uptime)), process.at, process.why)


def _clock_time(at_ms: int) -> str:
    text = units.moment(at_ms)
    return text if text == units.UNKNOWN else f"{text[:19]} UTC"
