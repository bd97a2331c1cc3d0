"""How a parallel run (`pytest -n 4`) shares the tests out.

A worker takes a file at a time, so that what a module's tests share is made once, and a folder whose modules share what
takes long to start. The order is that of the collection, which puts the long kinds first (`kinds.py`). Half of the
workers leave those that run Java to the others: clients in Java have time limits of their own, and wait much, so there
is a core for something else beside them.

A fast run has its modules shared out before they are collected (`shares.py`).

Modules that judge what the machine can do come last, one after another in the one worker that is left, when no other
test runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import EachScheduling, LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.suite.kinds import is_alone, is_reader, kind_of, shared_folder

ALONE = "alone"  # the one group of all modules that want the machine to themselves
JAVA = ("apache", "spark")  # kinds that run it
READERS = "readers"  # and of those that read the project's code


class FilesThenAlone(LoadFileScheduling):  # type: ignore[misc]  # xdist's class is not typed
    """A file at a time; the group ALONE waits until every other worker has ended."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # keep the order of the collection

    def _split_scope(self, nodeid: str) -> str:
        module: str = super()._split_scope(nodeid)
        if is_reader(module):
            return READERS
        if is_alone(module):
            return ALONE
        return shared_folder(module) or module

    def remove_node(self, node: WorkerController) -> str | None:
        crashed: str | None = super().remove_node(node)
        for other in self.nodes:  # the last one may take the group now
            self._reschedule(other)
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self._is_only_alone_left() and self.nodes != [node]:
            return
        if self._is_java_enough(node):
            other = next((scope for scope in self.workqueue if scope != ALONE and not _runs_java(scope)), None)
            if other is not None:
                self.workqueue.move_to_end(other, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        others = [other for other in self.nodes if other is not node]
        if not self._is_only_alone_left() or not others:
            super()._reschedule(node)
        elif not node.shutting_down and any(not other.shutting_down for other in others):
            node.shutdown()  # it ends when its tests are done; the last one stays

    def _is_java_enough(self, node: WorkerController) -> bool:
        """Whether as many other workers have modules that run Java as may: half of all, the odd one too."""
        others = [work for other, work in self.assigned_work.items() if other is not node]
        busy = sum(
            any(_runs_java(scope) and not all(tests.values()) for scope, tests in work.items()) for work in others
        )
        return busy >= (len(others) + 2) // 2

    def _is_only_alone_left(self) -> bool:
        return next(iter(self.workqueue), None) == ALONE


class OwnShares(EachScheduling):  # type: ignore[misc]  # xdist's class is not typed
    """Every worker runs all that it has collected, which is its share."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        session = self.config.pluginmanager.getplugin("session")
        session.testscollected = sum(map(len, self.node2collection.values()))  # what the progress counts to


def _runs_java(scope: str) -> bool:
    return scope not in (ALONE, READERS) and kind_of(scope) in JAVA
