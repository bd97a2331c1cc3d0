"""Automatic failover of each broker name with a record in etcd: gantry_failover_…, as it was seen last."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.exporter.exposition import Family
from dashboard.status.failover import (
    Failovers,
    seconds_full,
    seconds_of_etcd,
    seconds_paused,
    seconds_thin,
    seconds_unfilled,
)


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
