"""The mark in a store folder whose log is a copy of a master's: `config/copy.json`.

It is set once the log was seen to agree with the master's. With it the folder is not opened as a master's by mistake:
the copy may lack what the master acknowledged, and with two masters of one name messages would go astray.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import orjson

from appliance.errors import StartError
from appliance.process.json_file import JsonFile, StateFileError
from appliance.settings.roles import BrokerConfig


@dataclass(frozen=True, slots=True)
class CopyMark:
    """The mark of one folder."""

    path: Path

    @classmethod
    def of(cls, store_root: Path) -> CopyMark:
        return cls(store_root / "config" / "copy.json")

    def check(self, config: BrokerConfig) -> None:
        """Refuse to open a copy as a master, or as a copy of another master's. StartError. Blocks."""
        try:
            mark = JsonFile(self.path).load()
        except StateFileError as exc:
            raise StartError(f"it is not known whether this store is a slave's: {exc}") from exc
        if mark is None:
            if self.path.exists() and not config.is_slave:  # the file of a copy, which lost its text
                raise StartError(
                    f"{self.path} is empty: this store is a slave's copy. Set brokerRole=SLAVE and brokerId"
                )
            return
        copy_of = str(mark.get("copyOf", ""))
        if not config.is_slave:
            raise StartError(
                f"{self.path}: this store is a slave's copy of {copy_of}, and brokerRole={config.broker_role} would "
                "open it as a master's. Set brokerRole=SLAVE and brokerId. To make it the master from now on, see "
                "docs/operations/replication.md"
            )
        if copy_of != config.broker_name:
            raise StartError(
                f"{self.path}: this store is a copy of {copy_of}, not of {config.broker_name}: correct brokerName, or "
                "name another storePathRootDir"
            )

    def clear(self) -> None:
        """Take the mark away: the store is a master's from now on. Blocks; OSError."""
        self.path.unlink(missing_ok=True)

    def set(self, config: BrokerConfig, master: str) -> None:
        """Mark the folder; who was followed first, and since when, is for people. Blocks; StateFileError."""
        if self.path.exists():
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        mark = {"copyOf": config.broker_name, "firstMaster": master, "since": now}
        JsonFile(self.path).write(orjson.dumps(mark, option=orjson.OPT_INDENT_2), 0)
