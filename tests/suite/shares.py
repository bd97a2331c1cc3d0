"""How a fast run with several workers shares the modules out: before they are imported.

Importing and collecting thousands of unit tests takes as long as a quarter of them does to run. So each worker collects
its own modules only, where a whole run has every worker collect all and hands out files one by one (`parallel.py`).
A share is of one package as far as that goes: what its tests import, and the dashboard's database, is then there once.
"""

from __future__ import annotations

import functools
from pathlib import Path

from tests.source_files import PACKAGES
from tests.suite.kinds import TESTS, is_reader, kind_of

READING = 9  # how many times longer what reads all code runs than other tests of as much text


@functools.cache
def share_of(worker: int, workers: int) -> frozenset[Path]:
    """The unit modules of one of `workers`: neighbours, and those that read the project's code together.

    The longer a module's text, the longer its tests run, by and large.
    """
    modules = sorted((path for path in TESTS.rglob("test_*.py") if kind_of(path) == "unit"), key=_place)
    readers = [path for path in modules if is_reader(path)]
    groups = [readers, *([path] for path in modules if not is_reader(path))]
    sizes = [sum(path.stat().st_size for path in group) for group in groups]
    sizes[0] *= READING
    share, before = set[Path](), 0
    for size, group in zip(sizes, groups, strict=True):
        if (before + size / 2) * workers // sum(sizes) == worker:
            share.update(group)
        before += size
    return frozenset(share)


def _place(module: Path) -> tuple[int, Path]:
    """Floor by floor, what is about no package first."""
    package = module.relative_to(TESTS).parts[0]
    return PACKAGES.index(package) if package in PACKAGES else -1, module
