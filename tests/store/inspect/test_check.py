"""The quick look: what state the store is in, and whether its parts end at the same place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq import __version__
from store import MessageStoreConfig
from store.inspect.check import CheckResult, check_store
from store.inspect.findings import Finding, Level
from store.inspect.folder import NoStoreFolder, StoreFolder, lock_holder
from store.startup.format_stamp import write_stamp
from tests.store.conftest import Clock, OpenStore
from tests.store.golden import GOLDEN_STORES, unpack
from tests.store.inspect.conftest import MESSAGES, fill, log_file, overwrite, queue_file, snapshot


def check(root: Path) -> CheckResult:
    with StoreFolder(root) as folder:
        return check_store(folder)


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_apaches_stores_are_healthy(name: str, tmp_path: Path) -> None:
    config = unpack(name, tmp_path)
    before = snapshot(config.root)
    result = check(config.root)
    assert result.findings.worst is (Level.WARNING if name == "crash_abort" else Level.NOTE)
    assert set(result.findings.counts) <= {"abort_marker"}
    assert snapshot(config.root) == before


def test_a_store_of_ours_is_healthy(stopped: MessageStoreConfig) -> None:
    result = check(stopped.root)
    assert list(result.findings) == []
    facts = dict(result.facts)
    assert facts["state"].startswith("stopped")
    assert f"{MESSAGES + 3:,} units" in facts["consume queues"]
    assert facts["queues behind"].startswith("221 ") or "bytes" in facts["queues behind"]


def test_the_format_is_told_and_a_newer_one_is_an_error(stopped: MessageStoreConfig, tmp_path: Path) -> None:
    assert dict(check(stopped.root).facts)["format"] == f"1, stamped by GantryMQ {__version__}"
    write_stamp(stopped.root, 7, "9.9")
    result = check(stopped.root)
    assert dict(result.facts)["format"] == "7, newer than known"
    [finding] = result.findings
    assert finding.level is Level.ERROR and "written by GantryMQ 9.9" in finding.text
    apache = unpack(GOLDEN_STORES[0], tmp_path / "apache")
    assert dict(check(apache.root).facts)["format"].startswith("RocketMQ's, without a stamp")


def test_after_a_crash_it_says_so(small: MessageStoreConfig, open_store: OpenStore, clock: Clock) -> None:
    store = open_store(small)
    fill(store, clock, 20)
    store.abandon()
    assert set(check(small.root).findings.counts) == {"abort_marker", "queues_behind"}


@pytest.mark.parametrize(
    ("damage", "code"),
    [("queue end", "queue_end"), ("torn", "torn_tail"), ("checkpoint", "checkpoint_size"), ("gap", "files_missing")],
)
def test_what_does_not_fit_together_is_named(stopped: MessageStoreConfig, damage: str, code: str) -> None:
    match damage:
        case "queue end":
            overwrite(queue_file(stopped, index=800), 19 * 20 + 6, b"\0")
        case "torn":
            with StoreFolder(stopped.root) as folder:
                last = folder.queues["T", 0].unit_at(MESSAGES - 1)
                assert last is not None
            overwrite(log_file(stopped, 131072), last.physical_offset - 131072 + 50, bytes(4000))
        case "checkpoint":
            (stopped.root / "checkpoint").write_bytes(bytes(10))
        case "gap":
            log_file(stopped, 65536).unlink()
    assert check(stopped.root).findings.of(code)


def test_the_holder_of_a_lock_is_named_without_disturbing_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    script = (
        "import fcntl, sys\n"
        f"file = open({str(lock)!r}, 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "locked\n"
        for _ in range(2):
            holder = lock_holder(lock)
            assert holder is not None
            assert holder.process_id == process.pid
        process.stdin.close()
        process.wait()
    assert lock_holder(lock) is None


def test_a_store_without_a_message_is_healthy(small: MessageStoreConfig, open_store: OpenStore) -> None:
    open_store(small).close()
    assert list(check(small.root).findings) == [
        Finding(Level.NOTE, "no_commit_log", str(small.root / "commitlog"), -1, "no commit log file")
    ]


def test_a_folder_without_a_store_is_refused_and_stays_empty(tmp_path: Path) -> None:
    with pytest.raises(NoStoreFolder):
        StoreFolder(tmp_path)
    assert list(tmp_path.iterdir()) == []
