"""The drive: one appliance with two brokers, its pages one by one, then open tabs, then a broker stopped or killed.

    python -m tests.bench.dashboard [--topics N] [--groups N] [--tabs 1,20,200] [--seconds S]

Time and CPU are milliseconds; CPU of a request has the idle share of that time taken off.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import tempfile
import threading
import time
from pathlib import Path

from tests.appliance_process import RunningAppliance
from tests.bench.dashboard.many_names import fill, group_name, topic_name
from tests.bench.dashboard.measures import Meter, idle_cost, request_cost, tabs_cost
from tests.visitor import Visitor, first_run_token

PAGES = (
    "/",
    "/topics",
    "/topics?page=40",
    "/topics?q=77",
    "/topics?sort=stored&down=1",
    "/topics?sort=lag&down=1",
    "/groups",
    "/groups?sort=name",
    "/groups?q=77",
    f"/topic/{topic_name(0)}",
    f"/group/{group_name(0)}",
)
LISTS = ("/api/v1/topics", "/api/v1/groups")
WARM_S = 15.0
SECRET = re.compile(r'copy-large" data-copy-text="([^"]+)"')


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.dashboard", description=__doc__)
    parser.add_argument("--topics", type=int, default=5000)
    parser.add_argument("--groups", type=int, default=5000)
    parser.add_argument("--tabs", default="1,20,200")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="data folder that is filled once and used again")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gantry-bench-") as made:
        folder = wanted.keep or Path(made)
        drive(wanted, folder / "data")


def drive(wanted: argparse.Namespace, data: Path) -> None:
    is_filled = data.exists()
    with RunningAppliance(data, "--brokers", "2", environment={"GANTRY_WORKER_HANG_S": "0"}) as gantry:
        visitor = Visitor(gantry.url)
        if is_filled:
            visitor.log_in()
        else:
            visitor.become_admin(first_run_token(gantry.output))
            begun = time.monotonic()
            asyncio.run(fill(gantry.namesrv, wanted.topics, wanted.groups))
            print(f"filled in {time.monotonic() - begun:.0f} s", flush=True)
        meter = Meter(gantry)
        threading.Event().wait(WARM_S)
        _pages(meter, visitor, wanted)
        for path in ("/", "/topics", "/groups", f"/group/{group_name(0)}"):
            for number in (int(word) for word in wanted.tabs.split(",")):
                cost = tabs_cost(meter, visitor, path, number, wanted.seconds)
                print(
                    f"{path:28} {cost.tabs:4} tabs: CPU ms/s dashboard {cost.dashboard_ms:6.1f} brokers "
                    f"{cost.brokers_ms:6.1f}; a tab: {cost.frames:.2f} frames/s, {cost.asked:.2f} requests/s, "
                    f"{cost.kilobytes:.2f} KB/s {' '.join(cost.failed)[:200]}",
                    flush=True,
                )
        with meter.stopped(1, signal.SIGSTOP):
            _times("stopped", meter, visitor, wanted)
        with meter.stopped(1, signal.SIGKILL):
            _times("killed", meter, visitor, wanted)


def _pages(meter: Meter, visitor: Visitor, wanted: argparse.Namespace) -> None:
    idle = idle_cost(meter, wanted.seconds)
    made = visitor.submit("/tokens", {"name": "bench", "scope": "read", "life_days": "30"})
    secret = SECRET.findall(visitor.get(made.headers["Location"]).text)[0]
    program = Visitor(visitor.base)
    program.headers["Authorization"] = f"Bearer {secret}"
    print(f"idle: CPU ms/s dashboard {idle[0]:.1f} brokers {idle[1]:.1f}", flush=True)
    for path in (*PAGES, *LISTS):
        who = program if path in LISTS else visitor
        cost = request_cost(meter, lambda who=who, path=path: who.get(path).status, wanted.times)  # type: ignore[misc]
        share = cost.median_ms / 1000
        print(
            f"{path:34} {cost.median_ms:7.1f} (worst {cost.worst_ms:7.1f}); CPU dashboard "
            f"{cost.dashboard_ms - idle[0] * share:6.1f} brokers {cost.brokers_ms - idle[1] * share:6.1f}",
            flush=True,
        )


def _times(how: str, meter: Meter, visitor: Visitor, wanted: argparse.Namespace) -> None:
    """The first request finds the broker gone, the next ones know it."""
    for path in ("/", "/topics", "/groups", f"/group/{group_name(0)}"):
        cost = request_cost(meter, lambda path=path: visitor.get(path).status, wanted.times)  # type: ignore[misc]
        print(f"one of two brokers {how}: {path:28} {cost.median_ms:7.1f} (worst {cost.worst_ms:7.1f})", flush=True)


if __name__ == "__main__":
    main()
