"""A running broker's store, as a backup takes it: held open first, cut at the end of its last whole record.

A copy of files that are being written is no moment of the store. These rules make it what a crash leaves, which every
start can put right:

1. The log's files are opened before all else: what retention deletes meanwhile is read to its end.
2. Checkpoint and state files are copied before queues and index: what the checkpoint vouches for is in them.
3. The log's end is looked for last, when all else is copied: every offset, unit and key in the copy names a message
   below it. Behind it the copy has zeros, so no part of a later record can follow a gap.
4. No copy of a slave has more than its master's, which would count as having lost messages: where the longest log of a
   group ends is looked up before the first one is copied, and none is copied further. The master has as much by then.
5. The copy has the abort marker: its first start reads the log, and gives queues and index what they lack.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from appliance.cli.backup.manifest import BackupError
from appliance.settings.broker_processes import BROKERS_MAX, SLAVES_MAX, broker_processes
from appliance.settings.loader import load_broker_config
from store.inspect.folder import NoStoreFolder, StoreFolder
from store.inspect.log_reader import LogRecord

LOG, FIRST = "commitlog", ("checkpoint", "config")  # names in a store folder
LEFT_OUT = frozenset({"lock", "abort"})
EPOCHS = Path("config") / "epochs.json"


@dataclass
class HeldLog:
    """The files of one broker's log, open from the start of the backup. files: by their name."""

    broker: str
    root: Path
    files: dict[str, int] = field(default_factory=dict)
    epochs: bytes = b""

    def hold(self, stack: ExitStack) -> None:
        """Open the files that are not open yet."""
        for path in sorted((self.root / LOG).glob("[0-9]*")):
            if path.name not in self.files:
                try:
                    descriptor = os.open(path, os.O_RDONLY)
                except FileNotFoundError:
                    continue  # deleted since it was listed
                stack.callback(os.close, descriptor)
                self.files[path.name] = descriptor

    def begin(self, stack: ExitStack) -> None:
        self.hold(stack)
        self.epochs = self._read_epochs()

    def check_unchanged(self) -> None:
        """Raises BackupError after a switch-over during the backup: its state files are of the epoch before."""
        if self._read_epochs() != self.epochs:
            raise BackupError(f"the role of {self.broker} changed during the backup: make it again")

    def _read_epochs(self) -> bytes:
        try:
            return (self.root / EPOCHS).read_bytes()
        except FileNotFoundError:
            return b""


def held_logs(brokers: Path) -> Iterator[HeldLog]:
    """One for each broker that has a store. Raises BackupError for a log that is outside of the data folder."""
    for folder in sorted(path for path in brokers.iterdir() if path.is_dir()) if brokers.is_dir() else ():
        root = folder / "store"
        if not root.is_dir():
            continue
        properties = folder / "broker.properties"
        store = load_broker_config(properties if properties.exists() else None)[1]
        outside = [str(path) for path in store.commit_log_folders if path != store.root / LOG]
        if outside:
            raise BackupError(
                f"{folder.name} has its commit log in {', '.join(outside)}, outside of the data folder: this can't be "
                "backed up here"
            )
        yield HeldLog(folder.name, root)


def ends_of_groups(logs: Sequence[HeldLog]) -> dict[str, int]:
    """For each log, by its broker's folder, where the longest one of its master and slaves ends."""
    names = {each.name: each.broker_name for each in broker_processes(BROKERS_MAX, SLAVES_MAX, 0)}
    groups = {log.broker: names.get(log.broker, log.broker) for log in logs}
    longest: dict[str, int] = {}
    for log in logs:
        group = groups[log.broker]
        longest[group] = max(longest.get(group, 0), log_end(log.root))
    return {broker: longest[group] for broker, group in groups.items()}


def log_end(root: Path) -> int:
    """Where the last whole record ends, without those that are stored from now on; 0 for an empty log. Looks at the log
    from the last message of any queue on."""
    until_ms = time.time() * 1000
    try:
        folder = StoreFolder(root)
    except NoStoreFolder:
        return 0
    with folder:
        folder.look_at_log_again()
        units = [
            queue.unit_at(end - 1) for queue in folder.queues.values() if (end := queue.quick_end()) > queue.first_index
        ]
        newest = max((unit.physical_offset for unit in units if unit and not unit.is_filler), default=-1)
        begun = folder.log.begun_files()
        start = begun[-1].base if begun else 0
        if newest >= folder.log.min_offset and isinstance(folder.log.record_at(newest), LogRecord):
            start = newest
        end = start
        for found in folder.log.read(start):
            if not isinstance(found, LogRecord):
                break
            end = found.end
            if found.fields.store_timestamp > until_ms:
                break
        return end
