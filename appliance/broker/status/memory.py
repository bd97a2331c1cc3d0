"""What a broker's process has in memory, and what for, in bytes: our own keys of GET_BROKER_RUNTIME_INFO.

    memoryBytes = memoryMappedBytes          pages of files, the log's and the program's; the kernel may take them back
                + memoryRequestBytes         frames that are being read, requests that wait
                + memorySubscriptionBytes    what consumers subscribed to, about
                + memoryTimerBytes           timed messages that are due soon, or not in their files yet
                + memoryPoolBytes            messages that the transient pool has not written yet
                + memoryFreeBytes            freed by the program, kept for its next burst
                + memoryOtherBytes           all else: the program, tables of topics, groups and clients

The kernel's sums and counters that are kept anyway: it costs the same whatever is resident, some 25 us. Which files
the mapped pages are of only smaps tells, which walks all of them: 9 to 21 ms a GiB, too much for the loop.
"""

from __future__ import annotations

import re
import resource
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.broker.timer.due_table import PLACE_BYTES

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController

_STATUS = Path("/proc/self/status")
_STATM = Path("/proc/self/statm")
_LINE = re.compile(r"^(RssAnon|RssFile|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE)


def memory_figures(parts: BrokerController) -> dict[str, str]:
    """The rows; none on a system that does not tell. memorySwappedBytes is not resident, so it is in none of them."""
    sizes = _of_the_kernel()
    has_parts = {"RssAnon", "RssFile", "RssShmem"} <= sizes.keys()
    table = _in_parts(sizes, parts) if has_parts else _whole()
    if "VmSwap" in sizes:
        table["memorySwappedBytes"] = sizes["VmSwap"]
    return {key: str(size) for key, size in table.items()}


def _in_parts(sizes: dict[str, int], parts: BrokerController) -> dict[str, int]:
    own, shared = sizes["RssAnon"], sizes["RssShmem"]
    pool = min(_waiting_bytes(parts), shared)
    table = {
        "memoryBytes": own + shared + sizes["RssFile"],
        "memoryMappedBytes": sizes["RssFile"] + shared - pool,
        "memoryPoolBytes": pool,
    }
    for key, counted in _counted(parts).items():
        table[key] = min(counted, own)  # what is swapped out counts, and is not resident
        own -= table[key]
    table["memoryOtherBytes"] = own
    return table


def _whole() -> dict[str, int]:
    """Where the kernel tells no parts: an old one, or a sandbox."""
    try:
        _, resident, mapped, *_ = _STATM.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return {}
    page = resource.getpagesize()
    return {"memoryBytes": int(resident) * page, "memoryMappedBytes": int(mapped) * page}


def _of_the_kernel() -> dict[str, int]:
    try:
        told = _STATUS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # a system without /proc
        return {}
    return {key: int(kilobytes) << 10 for key, kilobytes in _LINE.findall(told)}


def _counted(parts: BrokerController) -> dict[str, int]:
    """What counters say of the program's own memory."""
    timer = parts.timer
    read = parts.server.held_bytes + parts.vip_server.held_bytes
    return {
        "memoryRequestBytes": read + parts.lanes.queued_bytes + parts.hold.held_bytes,
        "memorySubscriptionBytes": parts.consumers.subscribed_bytes,
        "memoryTimerBytes": timer.due.count * PLACE_BYTES + timer.backlog.buffered_bytes,
        "memoryFreeBytes": parts.memory_trimmer.kept_bytes,
    }


def _waiting_bytes(parts: BrokerController) -> int:
    log = parts.store.parts.log
    return log.position - log.readable_end
