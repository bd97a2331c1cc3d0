"""Reading a log whose writer is at work: what is half copied at one look is no damage."""

from __future__ import annotations

import pytest

from store import MessageStoreConfig
from store.inspect import log_reader
from store.inspect.folder import StoreFolder
from store.inspect.log_reader import LOOKS_AGAIN_MAX, BreakKind, LogBreak, LogReader, LogRecord
from tests.store.inspect.conftest import log_file, overwrite

HELD_BACK_BYTES = 64  # the C library copies as many of a run's first bytes last


@pytest.mark.parametrize("bytes_come", [True, False], ids=["copied in the end", "damage"])
def test_first_bytes_that_come_last_are_waited_for_in_a_live_log(
    stopped: MessageStoreConfig, monkeypatch: pytest.MonkeyPatch, bytes_come: bool
) -> None:
    path = log_file(stopped)
    waits: list[float] = []
    with StoreFolder(stopped.root) as folder:
        whole = [found for found in folder.log.read() if isinstance(found, LogRecord)]
        held_back = whole[7].physical_offset
        head = path.read_bytes()[held_back : held_back + HELD_BACK_BYTES]
        overwrite(path, held_back, bytes(HELD_BACK_BYTES))

        def writer_runs(seconds: float) -> None:
            waits.append(seconds)
            if bytes_come and len(waits) == 3:
                overwrite(path, held_back, head)

        monkeypatch.setattr(log_reader.time, "sleep", writer_runs)
        found = list(LogReader(folder.log.files, folder.reader, is_live=True).read())
    breaks = [item for item in found if isinstance(item, LogBreak) and item.kind is not BreakKind.END]
    if bytes_come:
        assert len(waits) == 3
        assert breaks == []
        assert [item.physical_offset for item in found if isinstance(item, LogRecord)] == [
            record.physical_offset for record in whole
        ]
    else:
        assert len(waits) == LOOKS_AGAIN_MAX
        assert [(item.kind, item.physical_offset, item.resumes_at) for item in breaks] == [
            (BreakKind.DAMAGE, held_back, whole[8].physical_offset)
        ]


def test_a_log_that_nobody_writes_is_not_waited_for(
    stopped: MessageStoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader.time, "sleep", None)  # would fail
    with StoreFolder(stopped.root) as folder:
        seventh = [found for found in folder.log.read() if isinstance(found, LogRecord)][7]
        overwrite(log_file(stopped), seventh.physical_offset, bytes(HELD_BACK_BYTES))
        breaks = [found.kind for found in folder.log.read() if isinstance(found, LogBreak)]
    assert breaks == [BreakKind.DAMAGE, BreakKind.END]
