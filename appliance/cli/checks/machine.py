"""The machine: its clock, its memory, its certificates, its interpreter. Quick, and nothing is written."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from appliance.cli.checks.finding import Finding, good, warning
from appliance.fast_path.loader import status
from appliance.settings.appliance_config import ApplianceConfig

CLOCK_UNKNOWN = 5  # adjtimex: TIME_ERROR, no program keeps the clock in time
TIMEX_BYTES = 512  # the structure is smaller
WEB_BYTES, BROKER_BYTES = 160 << 20, 96 << 20  # what each takes after its start, somewhat rounded up
CERTIFICATE_DAYS = 30  # before its end a certificate is told
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def check_interpreter() -> Iterator[Finding]:
    yield good(f"Python {platform.python_version()}: {sys.executable}.")


def check_clock() -> Iterator[Finding]:
    """Messages carry times, and members compare them."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    except (OSError, AttributeError):
        return  # not Linux
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if state == CLOCK_UNKNOWN:
        yield warning(
            f"The clock ({now}) is kept in time by no program that says so to the kernel: install chrony or "
            "systemd-timesyncd, or see to the time of the machine below if this is a container."
        )
    elif state >= 0:
        yield good(f"The clock is kept in time: {now}.")


def check_memory(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether what a start takes is free. Reports take theirs on top, while they run."""
    free = free_memory_bytes()
    needed = WEB_BYTES + BROKER_BYTES * len(config.broker_processes)
    if free is None:
        return
    if free < needed:
        yield warning(
            f"Only {free >> 20} MiB of memory are free, and this start takes some {needed >> 20} MiB: stop other "
            "programs, give the machine more, or run fewer brokers (--brokers)."
        )
    else:
        yield good(f"{free >> 20} MiB of memory are free; a start takes some {needed >> 20} MiB.")


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


def check_certificate(config: ApplianceConfig, now: datetime | None = None) -> Iterator[Finding]:
    """How long the certificate of tls_cert is good. One that can't be read is found with the rest of TLS."""
    if not config.tls_cert:
        return
    from appliance.certificates import ends_at

    try:
        end = ends_at(Path(config.tls_cert))
    except (OSError, ValueError):
        return
    days = (end - (now or datetime.now(UTC))).days
    if days < 0:
        yield warning(f"The certificate {config.tls_cert} has expired {-days} days ago: replace it.")
    elif days < CERTIFICATE_DAYS:
        yield warning(f"The certificate {config.tls_cert} is good for {days} more days only: replace it.")
    else:
        yield good(f"The certificate {config.tls_cert} is good for {days} more days.")


def check_compiled() -> Iterator[Finding]:
    found = status()
    if found.is_on:
        yield good(f"The fast path is compiled ({found.why}).")
    else:
        yield warning(f"The fast path is off, and brokers run at a third to a fifth of their speed: {found.why}.")


def check_cores() -> Iterator[Finding]:
    yield good(f"{len(os.sched_getaffinity(0))} cores.")
