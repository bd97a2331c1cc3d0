"""What holds of the machine whether an appliance runs or not: quick, and nothing is written. The dashboard shows these
sentences, too, translated: each has its facts apart."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from appliance.cli.checks.finding import Finding, good, warning
from appliance.fast_path.loader import status
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.byte_size import readable

CLOCK_UNKNOWN = 5  # adjtimex: TIME_ERROR, no program keeps the clock in time
TIMEX_BYTES = 512  # the structure is smaller
CERTIFICATE_DAYS = 30  # before its end a certificate is told
LITTLE_MEMORY_BYTES = 128 << 20  # less may not hold a burst of messages
OPEN_FILES_WANTED = 65_536
MAP_COUNT_WANTED = 65_530  # Linux's default; a consume queue is a mapping, so are commit-log and index files
MAP_COUNT = Path("/proc/sys/vm/max_map_count")
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def check_interpreter(config: ApplianceConfig) -> Iterator[Finding]:
    yield good("Python %(version)s: %(path)s.", version=platform.python_version(), path=sys.executable)


def check_cores(config: ApplianceConfig) -> Iterator[Finding]:
    yield good("CPU cores: %(count)s.", count=len(os.sched_getaffinity(0)))


def check_free_memory(config: ApplianceConfig) -> Iterator[Finding]:
    free = free_memory_bytes()
    if free is None:
        return
    if free < LITTLE_MEMORY_BYTES:
        yield warning(
            "Only %(free)s of memory are free: stop other programs, or give the machine more.", free=readable(free)
        )
    else:
        yield good("%(free)s of memory are free.", free=readable(free))


def check_clock(config: ApplianceConfig) -> Iterator[Finding]:
    """Messages carry times, and members compare them."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    except (OSError, AttributeError):
        return  # not Linux
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if state == CLOCK_UNKNOWN:
        yield warning(
            "No program tells the kernel that it keeps the clock (%(now)s) in time: install chrony or "
            "systemd-timesyncd. In a container, check the time of its host.",
            now=now,
        )
    elif state >= 0:
        yield good("The clock is kept in time: %(now)s.", now=now)


def check_open_files(config: ApplianceConfig) -> Iterator[Finding]:
    """`raise_open_files` has raised, or raises, the limit as far as it can be."""
    limit = open_files_reachable()
    if limit < OPEN_FILES_WANTED:
        yield warning(
            "A process can open only %(limit)s files and connections: for more, run `ulimit -n %(wanted)s` before the "
            "start (systemd: LimitNOFILE=%(wanted)s).",
            limit=limit,
            wanted=OPEN_FILES_WANTED,
        )
    else:
        yield good("A process can open %(limit)s files and connections.", limit=limit)


def open_files_reachable() -> int:
    """Those that a process can open when it raises its limit as far as it is wanted."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)


def raise_open_files() -> None:
    """As far as wanted and allowed; every process of the appliance inherits it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < open_files_reachable():
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files_reachable(), hard))


def check_map_count(config: ApplianceConfig) -> Iterator[Finding]:
    try:
        limit = int(MAP_COUNT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return  # not Linux: no such limit
    if limit < MAP_COUNT_WANTED:
        yield warning(
            "vm.max_map_count is %(limit)s, so a broker with many queues can't map its files: raise it with "
            "`sudo sysctl -w vm.max_map_count=655360`.",
            limit=limit,
        )
    else:
        yield good("A process can map %(limit)s files.", limit=limit)


def check_certificate(config: ApplianceConfig, now: datetime | None = None) -> Iterator[Finding]:
    """How long the certificate of tls_cert is good. One that can't be read is found with the rest of TLS."""
    if not config.tls_cert:
        return
    from appliance.certificates import ends_at

    try:
        end = ends_at(Path(config.tls_cert))
    except (OSError, ValueError):
        return
    days, path = (end - (now or datetime.now(UTC))).days, config.tls_cert
    if days < 0:
        yield warning("The certificate %(path)s expired %(days)s days ago: replace it.", path=path, days=-days)
    elif days < CERTIFICATE_DAYS:
        yield warning("The certificate %(path)s is good for %(days)s more days only: replace it.", path=path, days=days)
    else:
        yield good("The certificate %(path)s is good for %(days)s more days.", path=path, days=days)


def check_fast_path(config: ApplianceConfig) -> Iterator[Finding]:
    found = status()
    if found.is_on:
        yield good("The fast path is compiled (%(why)s).", why=found.why)
    else:
        yield warning(
            "The fast path is off, and brokers run at a third to a fifth of their speed: %(why)s.", why=found.why
        )


def free_memory_bytes() -> int | None:
    """What the machine, or this container, can still give; None where that is not known."""
    import psutil  # a start with other problems does not need it

    free = int(psutil.virtual_memory().available)
    try:
        limit = CGROUP_LIMIT.read_text(encoding="ascii").strip()
        if limit != "max":
            free = min(free, max(int(limit) - int(CGROUP_USED.read_text(encoding="ascii")), 0))
    except (OSError, ValueError):
        return free
    return free
