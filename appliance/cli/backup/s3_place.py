"""Backups in S3, through Arrow's client, as the lake of reports is there: the same addresses, options and keys.

An object is written once. S3 has no links: a file that did not change stays with the backup that sent it, whose name
the manifests of later ones have, and it goes with the last of them. Zeros at the end of a file are not sent.

Nothing in S3 says whether another backup is being made. So a place belongs to one appliance, which makes one at a time;
and before a manifest is written, everything it names is looked for once more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs as arrow_fs

from appliance.cli.backup import copying
from appliance.cli.backup.manifest import CONTENT, NAME, BackupError, Entry, Manifest, decode
from appliance.reports.lake.place import connected, first_line, refused
from appliance.settings.lake_place import StoreAddress

READ_BYTES = 16 << 20  # of one request
CALLED = "the address"


class S3Place:
    """A prefix in a bucket that exists."""

    def __init__(self, address: StoreAddress) -> None:
        self._address = address.address
        self._files, self._root = connected(address, CALLED)

    @property
    def scratch(self) -> Path | None:
        return None

    def path(self, backup: str) -> str:
        return f"{self._address}/{backup}"

    def used(self, backup: str, manifest: Manifest) -> int:
        return sum(entry.length for entry in manifest.files.values())

    def is_backup(self) -> bool:
        with self._asked():
            return bool(self._files.get_file_info(f"{self._root}/{NAME}").is_file)

    def whole(self) -> list[str]:
        return [name for name, has_manifest in self._backups().items() if has_manifest]

    def unfinished(self) -> list[str]:
        return [name for name, has_manifest in self._backups().items() if not has_manifest]

    def manifest(self, backup: str) -> Manifest:
        data = b"".join(self._read(f"{self._root}/{backup}/{NAME}"))
        return decode(data, f"{self.path(backup)}/{NAME}")

    def begin(self, backup: str) -> None:
        if backup in self._backups():
            raise BackupError(f"{self.path(backup)} is there already: try again in a second")

    def put(self, backup: str, name: str, parts: Iterator[bytes], size_bytes: int, mtime_ns: int) -> Entry:
        stored = 0

        def sent() -> Iterator[bytes]:
            nonlocal stored
            for part in self._sent(copying.without_zeros_at_end(parts), self._object(backup, name)):
                stored += len(part)
                yield part

        return Entry(size_bytes, copying.hash_of(sent(), size_bytes), mtime_ns, stored_bytes=stored)

    def keep(self, backup: str, before: str, name: str, entry: Entry) -> Entry:
        return Entry(entry.size_bytes, entry.sha256, entry.mtime_ns, entry.stored_bytes, entry.held_by or before)

    def drop(self, backup: str, name: str) -> None:
        """Without effect: an object that no manifest names goes with its backup."""

    def seal(self, backup: str, manifest: Manifest) -> None:
        there = {info.path: info.size for info in self._below()}
        for name, entry in manifest.files.items():
            if entry.length and there.get(self._object(entry.held_by or backup, name)) != entry.length:
                raise BackupError(
                    f"{self.path(entry.held_by or backup)} lacks {name}: was another backup made, or removed, at the "
                    "same time? Make this one again"
                )
        for _ in self._sent(iter([manifest.encoded()]), f"{self._root}/{backup}/{NAME}"):
            pass

    def remove(self, backups: list[str]) -> None:
        left = [name for name in self.whole() if name not in backups]
        needed = {
            self._object(entry.held_by, name)
            for backup in left
            for name, entry in self.manifest(backup).files.items()
            if entry.held_by in backups
        }
        for backup in backups:
            manifest = f"{self._root}/{backup}/{NAME}"
            found = self._below(backup)
            files = {info.path for info in found if info.is_file}
            with self._asked():  # one by one: not every server that speaks S3 can remove several by one request
                for path in [manifest] * (manifest in files) + sorted(files - needed - {manifest}):
                    self._files.delete_file(path)
                if needed.isdisjoint(files):
                    for folder in sorted((info.path for info in found if not info.is_file), reverse=True):
                        self._files.delete_dir(folder)  # an empty object that some servers and Arrow make
                    self._files.delete_dir(f"{self._root}/{backup}")

    def parts(self, backup: str, name: str, entry: Entry) -> Iterator[bytes]:
        return self._read(self._object(entry.held_by or backup, name))

    def _sent(self, parts: Iterator[bytes], path: str) -> Iterator[bytes]:
        """The parts, each of them sent. Without any there is no object."""
        stream = None
        try:
            for part in parts:
                with self._asked():
                    stream = stream or self._files.open_output_stream(path)
                    stream.write(part)
                yield part
        finally:
            if stream is not None:
                with self._asked():
                    stream.close()

    def _read(self, path: str) -> Iterator[bytes]:
        with self._asked():
            try:
                stream = self._files.open_input_stream(path)
            except FileNotFoundError as exc:
                raise BackupError(f"the backup is damaged: s3://{path} is missing") from exc
        with stream:
            while True:
                with self._asked():
                    part = stream.read(READ_BYTES)
                if not part:
                    return
                yield part

    def _backups(self) -> dict[str, bool]:
        """By their names, whether they have a manifest."""
        with self._asked():
            found = self._files.get_file_info(arrow_fs.FileSelector(self._root, allow_not_found=True))
            names = sorted(info.base_name for info in found if not info.is_file)
            manifests = self._files.get_file_info([f"{self._root}/{name}/{NAME}" for name in names])
        return {name: info.is_file for name, info in zip(names, manifests, strict=True)}

    def _below(self, backup: str = "") -> list[arrow_fs.FileInfo]:
        """All that is in one backup, or in the place."""
        where = arrow_fs.FileSelector(f"{self._root}/{backup}".rstrip("/"), recursive=True, allow_not_found=True)
        with self._asked():
            return list(self._files.get_file_info(where))

    def _object(self, backup: str, name: str) -> str:
        return f"{self._root}/{backup}/{CONTENT}/{name}"

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        """Have what the store refuses name it, and never look like a file of the data folder that went."""
        try:
            with refused(self._address, CALLED):
                yield
        except FileNotFoundError as exc:
            raise BackupError(f"{self._address}: {first_line(exc)}") from exc
