"""KVConfigManager: the name server's key-value settings by namespace, kept in kvConfig.json.

RocketMQ's own format: `{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}}}`. Brokers get the namespace
ORDER_TOPIC_CONFIG with each registration. Writing is atomic: a temporary file is made durable and renamed, and what
stood there before is kept as `.bak`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from appliance.errors import BrokerError
from appliance.settings.replaced_file import sync_path
from gantrymq.errors import BodyError, ConfigError
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import ResponseCode

logger = logging.getLogger(__name__)

CHARS_MAX = 16 << 20  # of all settings together: the whole file is written at each change
ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"


class KVConfigManager:
    """The table. `load` and `write` do file I/O and block, `save` does it in a thread; the rest is memory only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._table: dict[str, dict[str, str]] = {}
        self._write_lock = asyncio.Lock()

    # -- the table ----------------------------------------------------------------------------------------------------

    def put(self, namespace: str, key: str, value: str) -> None:
        """Remember a setting. BrokerError when all settings together take too much."""
        known = self._table.get(namespace, {}).get(key)
        more = len(value) - len(known) if known is not None else len(namespace) + len(key) + len(value)
        if more > 0 and self._chars() + more > CHARS_MAX:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER, f"all settings together have {CHARS_MAX} characters at most"
            )
        self._table.setdefault(namespace, {})[key] = value

    def get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, {}).get(key)

    def delete(self, namespace: str, key: str) -> None:
        """Forget the key; the namespace stays, empty perhaps."""
        self._table.get(namespace, {}).pop(key, None)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """A copy of the namespace's entries; None when there never was one."""
        entries = self._table.get(namespace)
        return None if entries is None else dict(entries)

    def _chars(self) -> int:
        return sum(
            len(namespace) + len(key) + len(value)
            for namespace, entries in self._table.items()
            for key, value in entries.items()
        )

    # -- the file -----------------------------------------------------------------------------------------------------

    def to_json(self) -> bytes:
        """What `write` should put into the file for the table as it stands."""
        return fastjson.dumps({"configTable": self._table})

    def load(self) -> None:
        """Read the file, or its `.bak` when it is damaged; no file at all is an empty table. Raises ConfigError."""
        backup = self._backup_path()
        for path in (self._path, backup):
            if not path.exists():
                continue
            try:
                self._table = _read_table(path.read_bytes())
                return
            except (OSError, BodyError) as exc:
                logger.error(
                    "kv config unreadable", extra={"event": "kv_config_unreadable", "path": str(path), "why": str(exc)}
                )
        if self._path.exists():
            raise ConfigError(f"{self._path} is damaged and {backup.name} does not help: repair it or move it away")

    async def save(self) -> None:
        """Write the table as it is now; returns when it is on disk. Raises BrokerError."""
        async with self._write_lock:  # else an older table might be written last
            try:
                await asyncio.to_thread(self.write, self.to_json())
            except OSError as exc:
                logger.exception("kv config not written", extra={"event": "kv_config_not_written"})
                raise BrokerError(
                    ResponseCode.SYSTEM_ERROR, f"changed in memory, but the file can't be written: {exc.strerror}"
                ) from exc

    def write(self, content: bytes) -> None:
        """Replace the file atomically, keeping the former one as `.bak`. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(self._path.name + ".tmp")
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if self._path.exists():
            self._path.replace(self._backup_path())
        temporary.replace(self._path)
        sync_path(self._path.parent)  # else the rename may be lost with the power

    def _backup_path(self) -> Path:
        return self._path.with_name(self._path.name + ".bak")


def _read_table(content: bytes) -> dict[str, dict[str, str]]:
    document = fastjson.loads(content)
    namespaces = document.get("configTable") if isinstance(document, dict) else None
    if not isinstance(namespaces, dict) or not all(isinstance(entries, dict) for entries in namespaces.values()):
        raise BodyError("there is no configTable of namespaces in it")
    return {
        str(namespace): {str(key): str(value) for key, value in entries.items()}
        for namespace, entries in namespaces.items()
    }
