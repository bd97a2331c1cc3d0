"""The long history: one row a minute in the database, made of what was sampled each second."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from dashboard.models.management import MetricSample
from dashboard.status.board import Point, Snapshot

HISTORY_STEP_S = 60
HISTORY_KEPT = timedelta(days=30)
FORGET_EACH_MINUTES = 60


@dataclass(slots=True)
class SlaveMinute:
    """How far the slaves of all masters were in one minute; None: not known."""

    slaves: int | None = None
    in_sync: int | None = None
    behind_bytes: int | None = None
    behind_messages: int | None = None
    behind_s: float | None = None
    rates: list[float] = field(default_factory=list)

    def add(self, snapshot: Snapshot) -> None:
        services = [broker.facts.services for broker in snapshot.masters if broker.is_answering and broker.facts]
        if not any(one.role for one in services):
            return
        slaves = [slave for one in services for slave in one.slaves]
        in_sync = sum(slave.in_sync for slave in slaves)
        self.slaves = max(self.slaves or 0, len(slaves))
        self.in_sync = in_sync if self.in_sync is None else min(self.in_sync, in_sync)
        self.rates.append(sum(slave.bytes_per_second for slave in slaves))
        for slave in slaves:
            self.behind_bytes = max(self.behind_bytes or 0, slave.behind_bytes)
            self.behind_s = max(self.behind_s or 0.0, slave.behind_seconds)
            if slave.behind_messages >= 0:
                self.behind_messages = max(self.behind_messages or 0, slave.behind_messages)


@dataclass(slots=True)
class Minute:
    """The seconds of one minute, until the next minute begins."""

    start: int | None = None
    ins: list[float] = field(default_factory=list)
    outs: list[float] = field(default_factory=list)
    stored: int | None = None
    disk: float | None = None
    answering: int = 0
    replication: SlaveMinute = field(default_factory=SlaveMinute)

    def add(self, snapshot: Snapshot, point: Point) -> MetricSample | None:
        """Take one second; returns the finished minute when this second belongs to the next."""
        minute = int(snapshot.at) // HISTORY_STEP_S * HISTORY_STEP_S
        finished = None
        if self.start is not None and minute != self.start:
            finished = self._sample()
            self.ins, self.outs, self.answering, self.disk, self.stored = [], [], 0, None, None
            self.replication = SlaveMinute()
        self.start = minute
        if point.in_rate is not None:
            self.ins.append(point.in_rate)
        if point.out_rate is not None:
            self.outs.append(point.out_rate)
        if snapshot.stored is not None and not snapshot.stored.missing:
            self.stored = snapshot.stored.messages
        answering = [broker for broker in snapshot.brokers if broker.is_answering]
        self.answering = max(self.answering, len(answering))
        ratios = [b.facts.disk_ratio for b in answering if b.facts is not None and b.facts.disk_ratio is not None]
        self.disk = max(ratios, default=self.disk)
        self.replication.add(snapshot)
        return finished

    def _sample(self) -> MetricSample:
        assert self.start is not None
        return MetricSample(
            at=datetime.fromtimestamp(self.start, UTC),
            in_rate=_mean(self.ins),
            in_rate_max=max(self.ins, default=None),
            out_rate=_mean(self.outs),
            out_rate_max=max(self.outs, default=None),
            stored_messages=self.stored,
            disk_ratio=self.disk,
            brokers_answering=self.answering,
            slaves=self.replication.slaves,
            slaves_in_sync=self.replication.in_sync,
            slave_behind_bytes=self.replication.behind_bytes,
            slave_behind_messages=self.replication.behind_messages,
            slave_behind_s=self.replication.behind_s,
            slave_bytes_rate=_mean(self.replication.rates),
        )


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


async def keep_minute(sample: MetricSample) -> None:
    """Write one minute, and now and then drop what is past its time."""
    await MetricSample.objects.aupdate_or_create(
        at=sample.at,
        defaults={
            item.name: getattr(sample, item.name) for item in MetricSample._meta.fields if item.name not in ("id", "at")
        },
    )
    if sample.at.minute % FORGET_EACH_MINUTES == 0:
        await MetricSample.objects.filter(at__lt=sample.at - HISTORY_KEPT).adelete()
