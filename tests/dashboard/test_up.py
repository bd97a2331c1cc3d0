"""`gantry up` as a process: asked to stop, it stops."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from dashboard.management.commands.up import _ask_to_stop


def test_it_stops_when_nobody_reads_its_words_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stopping = asyncio.Event()
    nobody_listens = os.fdopen(writing, "w")
    monkeypatch.setattr(sys, "stdout", nobody_listens)
    _ask_to_stop(stopping)
    monkeypatch.undo()
    assert stopping.is_set()
    with pytest.raises(BrokenPipeError):  # it was such a pipe
        nobody_listens.close()
