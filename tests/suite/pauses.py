"""`--pauses SEED`: processes of the run stand still for 20 to 500 ms, again and again, at moments nothing chose.

Workers of a parallel run and all that tests started: brokers, appliances, clients. A test with real processes that
assumes how fast one of them answers fails here, not on the busy machine of a check. A process of its own does it, so
that whoever is stopped goes on even if the run is killed.

Processes are known by the folder of the run in their environment (tests/machine.py): those of other runs and people
are never touched. One that a test stopped by itself is left alone while it stands.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil

from tests.machine import RUN_VARIABLE

OPTION = "--pauses"
VARIABLE = "GANTRY_TEST_PAUSES"  # tells the workers of a parallel run
STOPPED_S = (0.02, 0.5)
BETWEEN_S = (0.02, 0.4)


def begin(seed: str, *, spared: int | None) -> Callable[[], None]:
    """Stop processes of this run, one at a time, until the result is called. spared: one that is not, by its id."""
    command = [sys.executable, "-m", "tests.suite.pauses", seed, str(os.getpid()), str(spared or 0)]
    helper = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def end() -> None:
        helper.terminate()  # what stands goes on
        helper.wait()

    return end


def stop_and_continue(seed: str, owner: int, spared: int) -> None:
    """Until `owner` has ended, or SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    chance = random.Random(seed)
    while psutil.pid_exists(owner):
        if found := processes_of_run(os.environ[RUN_VARIABLE], but={os.getpid(), spared}):
            stand_still(chance.choice(found), chance.uniform(*STOPPED_S))
        time.sleep(chance.uniform(*BETWEEN_S))


def processes_of_run(folder: str, *, but: set[int]) -> list[psutil.Process]:
    """Those that have the run's folder in their environment, the longest-lived first."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            its_folder = process.environ().get(RUN_VARIABLE, "")
            if process.pid not in but and f"{its_folder}/".startswith(f"{folder}/"):
                found.append(process)
    return found


def stand_still(process: psutil.Process, seconds: float) -> None:
    """Not a process that stands already: whoever stopped it wants that."""
    with contextlib.suppress(psutil.Error):  # it has ended
        if process.status() == psutil.STATUS_STOPPED:
            return
        process.suspend()
        try:
            time.sleep(seconds)  # so long it stands
        finally:
            process.resume()


if __name__ == "__main__":
    stop_and_continue(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
