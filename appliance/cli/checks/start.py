"""What only a start needs: memory, a Java for reports, etcd for replicas."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.cli.checks.finding import Finding, good, warning
from appliance.cli.checks.machine import free_memory_bytes
from appliance.fast_path.loader import ON, why_missing
from appliance.process.local_etcd import local_etcd
from appliance.reports.errors import BashNotFound, JavaNotFound
from appliance.reports.java import find_java, need_bash
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.broker_processes import REPLICAS
from appliance.supervisor.etcd_node import find_etcd
from gantrymq.byte_size import readable

WEB_BYTES, BROKER_BYTES = 160 << 20, 96 << 20  # what each takes after its start, somewhat rounded up


def check_memory(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether what a start takes is free. Reports take theirs on top, while they run."""
    free = free_memory_bytes()
    needed = WEB_BYTES + BROKER_BYTES * len(config.broker_processes)
    if free is not None and free < needed:
        yield warning(
            f"Only {readable(free)} of memory are free, and this start takes about {readable(needed)}: stop other "
            "programs, give the machine more, or run fewer brokers (--brokers)."
        )


def check_java(config: ApplianceConfig) -> Iterator[Finding]:
    """Reports need bash and a Java. The stack brings a Java, so only one that will not be installed is missing."""
    if config.attach:
        return
    try:
        need_bash()
    except BashNotFound as exc:
        yield warning(f"Reports can't be computed: {exc}.")
    try:
        java = find_java(config.reports_folder / "jre", setting=config.java_home or None)
    except JavaNotFound as exc:
        if config.java_home or not config.install_reports:
            yield warning(f"Reports can't be computed: {exc}.")
    else:
        yield good(f"Reports run with the Java in {java.home}.")


def check_fast_path_wanted(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether it is there is told elsewhere; here only whether a start without it is refused."""
    if not config.attach and config.fast_path == ON and (why := why_missing()):
        yield Finding(f"fast_path=on, but the compiled fast path is not there: {why}.")


def check_replicas(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether etcd can decide which member is the master, and whether it has done so here before.

    Members whose in-sync set is on record in etcd must not go on without it: what they acknowledged then would not
    count in the record, and could be lost at the next start with it.
    """
    if config.attach:
        return
    has_record = local_etcd(config.etcd_folder) is not None
    program = find_etcd() if config.replicas > 1 else None
    if program is None and has_record:
        yield Finding(
            f"The brokers of {config.data} have replicas: start with --replicas {REPLICAS}. To go on without, start so "
            f"once more, run `gantry admin ha remove` for each broker, stop, and delete {config.etcd_folder}."
        )
    elif program is not None and not program.path:
        went_on = (
            f"etcd has the brokers' record in {config.etcd_folder}, and can't be started: {program.why_none}."
            if has_record
            else f"The brokers' masters are not elected: {program.why_none}. Until then an administrator promotes."
        )
        yield Finding(went_on, is_fatal=has_record)
