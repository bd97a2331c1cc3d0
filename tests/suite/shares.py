"""How a fast run with several workers shares the modules out: before they are imported.

Importing and collecting thousands of unit tests takes as long as a quarter of them does to run. So each worker collects
its own modules only, where a whole run has every worker collect all and hands out files one by one (`parallel.py`).
"""

from __future__ import annotations

import functools
from pathlib import Path

from tests.suite.kinds import TESTS, is_reader, kind_of


@functools.cache
def share_of(worker: int, workers: int) -> frozenset[Path]:
    """The unit modules of one of `workers`; those that read the project's code stay together.

    The longer a module's text, the longer its tests run, by and large: the next goes to whom has least.
    """
    modules = [path for path in TESTS.rglob("test_*.py") if kind_of(path) == "unit"]
    groups = [[path for path in modules if is_reader(path)], *([path] for path in modules if not is_reader(path))]
    sized = sorted(((sum(path.stat().st_size for path in group), group) for group in groups), reverse=True)
    sizes = [0] * workers
    shares: list[set[Path]] = [set() for _ in range(workers)]
    for size, group in sized:
        least = sizes.index(min(sizes))
        sizes[least] += size
        shares[least].update(group)
    return frozenset(shares[worker])
