"""What a worker of a parallel run tells of each test: the test, and a set-up or an end that failed or took long.

Each report takes a millisecond of a core, to pack, to unpack and to count, and there are three of every test. Two of
them say that nothing happened, in less time than `--durations` lists.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

LISTED_S = 0.005  # what --durations has in its list


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """As pytest's own, but for what is left out."""
    tell = item.ihook
    tell.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if is_told(report):
            tell.pytest_runtest_logreport(report=report)
    tell.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def is_told(report: pytest.TestReport) -> bool:
    return report.when == "call" or not report.passed or report.duration >= LISTED_S
