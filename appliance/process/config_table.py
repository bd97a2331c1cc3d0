"""Settings by name that a file keeps: what the tables of topics and of groups share.

An entry is replaced, never changed in place, so `configs` may be read without copying, and each entry is rendered for
the file once. Every change bumps the data version and is saved soon after (see StateWriter).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from appliance.process.cooperative import in_slices
from appliance.process.json_file import Document, JsonFile, SavedTable, StateWriter, document_body, member_text
from gantrymq.remoting.admin_bodies import DataVersion

WRITE_DELAY_S = 0.02  # a burst of new entries is one write, yet an operator's entry is on disk at once
ENTRIES_A_SLICE = 64  # of a master's table, before others have a turn


class Rendered(Protocol):
    def to_json(self) -> bytes: ...


C = TypeVar("C", bound=Rendered)


class ConfigTable(SavedTable, abc.ABC, Generic[C]):
    """member: what the file and the answers to requests call the table. clock: seconds since the epoch."""

    def __init__(self, path: Path, member: str, clock: Callable[[], float]) -> None:
        self._member = member
        self._clock = clock
        self._file = JsonFile(path)
        self._writer = StateWriter(self._file, self._render, delay_s=WRITE_DELAY_S)
        self._lines: dict[str, str] = {}  # name to its entry in the file
        self._watchers: list[set[str]] = []
        self.configs: dict[str, C] = {}
        self.data_version = DataVersion()

    async def body(self) -> bytes:
        """The whole table as a request for it gets it."""
        return await document_body({self._member: self._lines.values()}, data_version=self.data_version.to_json())

    def watch(self) -> set[str]:
        """A set that gets the names of the entries that change or go from now on."""
        watcher: set[str] = set()
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: set[str]) -> None:
        self._watchers = [each for each in self._watchers if each is not watcher]

    def take_entry(self, name: str, config: C | None) -> None:
        """Have an entry as a master has it, None: gone. The version stays: it is that of the whole table."""
        if config is not None:
            self._keep(name, self._named(name, config))
        elif name in self.configs:
            self._drop(name)
        self._writer.changed()

    @abc.abstractmethod
    def _named(self, name: str, config: C) -> C:
        """A copy of the entry that has the name it stands under: what was read may say another."""

    def _keep(self, name: str, config: C) -> None:
        self.configs[name] = config
        self._lines[name] = entry(name, config)
        self._note(name)

    def _drop(self, name: str) -> None:
        """Forget an entry. Raises KeyError when there is none."""
        del self.configs[name], self._lines[name]
        self._note(name)

    def _note(self, name: str) -> None:
        for watcher in self._watchers:
            watcher.add(name)

    async def _take_over(self, theirs: Mapping[str, C], version: DataVersion) -> None:
        """Become a master's table, its version included."""
        for name in self.configs.keys() - theirs.keys():
            self._drop(name)
        async for name, config in in_slices(list(theirs.items()), ENTRIES_A_SLICE):
            if self.configs.get(name) != config:
                self._keep(name, self._named(name, config))
        self.data_version = version
        self._writer.changed()

    def _bump(self) -> None:
        self.data_version.bump(int(self._clock() * 1000))

    def _touch(self) -> None:
        self._bump()
        self._writer.changed()

    def _render(self) -> Document:
        return Document({self._member: self._lines.values()}, data_version=self.data_version.to_json())


def entry(name: str, config: Rendered) -> str:
    """An entry of the table, `"name":{...}`."""
    return member_text(name, config.to_json().decode())
