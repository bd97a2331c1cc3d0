"""The page at /metrics, made of the board: no broker is asked. One snapshot is written once for all who read it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse

from dashboard.access.permissions import Permission, requires
from dashboard.exporter.broker_figures import broker_families
from dashboard.exporter.exposition import CONTENT_TYPE, Family, exposition
from dashboard.exporter.topic_figures import group_families, topic_families
from dashboard.status.board import Snapshot, board
from dashboard.status.check import Level
from dashboard.status.failover import (
    Failovers,
    seconds_full,
    seconds_of_etcd,
    seconds_paused,
    seconds_thin,
    seconds_unfilled,
)
from dashboard.status.verdict import judge


@requires(Permission.METRICS_READ, token=True)
async def metrics(request: HttpRequest) -> HttpResponse:
    snapshot = board.snapshot
    if snapshot is None:
        return HttpResponse("The cluster has not been looked at yet.\n", status=503, content_type="text/plain")
    return HttpResponse(await metrics_page.text(snapshot), content_type=CONTENT_TYPE)


class MetricsPage:
    """`text(snapshot)`: the page of a snapshot. Readers of the same second share one writing, in a thread."""

    def __init__(self) -> None:
        self._written: tuple[asyncio.AbstractEventLoop, Snapshot, asyncio.Task[str]] | None = None

    async def text(self, snapshot: Snapshot) -> str:
        loop = asyncio.get_running_loop()
        written = self._written
        if written is None or written[0] is not loop or written[1] is not snapshot:
            task = loop.create_task(asyncio.to_thread(page_of, snapshot), name="metrics page")
            written = self._written = (loop, snapshot, task)
        return await asyncio.shield(written[2])


metrics_page = MetricsPage()


def page_of(snapshot: Snapshot) -> str:
    """The whole page as text."""
    return exposition(families(snapshot))


def families(snapshot: Snapshot) -> Iterator[Family]:
    """All families. The cluster's come first: they are few, and the page has an end."""
    clusters = {
        broker.name: broker.facts.cluster for broker in snapshot.masters if broker.is_answering and broker.facts
    }
    yield from _of_the_cluster(snapshot)
    yield from _of_processes(snapshot)
    yield from broker_families(snapshot.brokers)
    yield from failover_families(snapshot.failovers, snapshot.at)
    dead = dict(snapshot.stored.dead_letters) if snapshot.stored is not None else {}
    yield from group_families(snapshot.groups, dead, clusters)
    yield from topic_families(dict(snapshot.topics), clusters)


def _of_the_cluster(snapshot: Snapshot) -> Iterator[Family]:
    at = Family("gantry_sampled_timestamp_seconds", "When the cluster was last looked at")
    at.add(snapshot.at)
    namesrv = Family("gantry_name_server_up", "1: the name server answered at the last look")
    namesrv.add(float(snapshot.namesrv_why is None))
    problems = Family("gantry_problems", "Problems that the Overview shows")
    counts = Counter(problem.level for problem in judge(snapshot).problems)
    for level in (Level.WARN, Level.BAD):
        problems.add(counts[level], level=level.name.lower())
    stored = Family("gantry_stored_messages", "Messages that can be read now; absent while a broker is not counted")
    if snapshot.stored is not None and not snapshot.stored.missing:
        stored.add(snapshot.stored.messages)
    return iter((at, namesrv, problems, stored))


def _of_processes(snapshot: Snapshot) -> Iterator[Family]:
    cpu = Family("gantry_process_cpu_ratio", "CPU time a second of a process of this appliance; 1 is one core")
    memory = Family("gantry_process_resident_bytes", "Memory of a process of this appliance")
    restarts = Family("gantry_process_restarts_total", "Restarts of a process of this appliance", "counter")
    for process in snapshot.processes:
        labels = {"process": process.name, "role": process.role}
        cpu.add(process.cpu_ratio, **labels)
        memory.add(process.rss_bytes, **labels)
        restarts.add(process.restarts, **labels)
    return iter((cpu, memory, restarts))


def failover_families(failovers: Failovers, now: float) -> Iterator[Family]:
    """What is not known has no line; where an administrator promotes, only whether etcd is full."""
    watched = [(each, each.watched) for each in failovers.values()]
    for name, help_, count in (
        ("gantry_failover_epoch", "Epoch of the master that etcd has on record", lambda told: told.epoch),
        ("gantry_failover_in_sync", "Brokers in sync, the master included", lambda told: len(told.in_sync)),
        ("gantry_failover_in_sync_min", "Brokers in sync below which no messages are taken",
         lambda told: told.in_sync_min),
        ("gantry_failover_candidates", "Members that could take over if the master ended now",
         lambda told: sum(not each.is_master and each.has_told and not each.refusal for each in told.members)),
    ):  # fmt: skip
        family = Family(name, help_)
        for failover, told in watched:
            if told is not None:
                family.add(count(told), broker=failover.name)
        yield family
    for name, help_, seconds in (
        ("gantry_failover_no_successor_seconds", "How long no member could take over; 0: one could", seconds_unfilled),
        ("gantry_failover_in_sync_small_seconds", "How long one more lost member would have stopped sends; 0: it "
         "would not", seconds_thin),
        ("gantry_failover_paused_seconds", "How long failover has been paused; 0: it is not", seconds_paused),
        ("gantry_etcd_answer_seconds", "How long etcd took to answer a broker, or has not answered", seconds_of_etcd),
        ("gantry_etcd_full_seconds", "How long etcd has been full, or seen to be never compacted; 0: neither",
         seconds_full),
    ):  # fmt: skip
        family = Family(name, help_)
        for failover, _ in watched:
            family.add(seconds(failover, now), broker=failover.name)
        yield family
