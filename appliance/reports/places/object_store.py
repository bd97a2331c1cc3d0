"""A lake's Parquet files in S3, in what speaks its protocol, or in HDFS.

No store of that kind moves a file at once, and not all can refuse a name that is taken. So neither is needed here:

- A file is written once, under a name that no other one has, at the place where it may count. It counts when the
  manifest lists it; what is never listed is deleted by the next run.
- The manifest stays in the data folder, where creating an entry is atomic (manifest.py). An entry is published after
  that, so what stands in the store is the lake as it is, or as it was some entries ago. A run that ended in between is
  made good by the next one.
- A data folder owns what it writes: its number is in the store. Another one is refused, and overwrites nothing.

Keys come from where AWS's programs look for them: the environment, its file of credentials, the machine's role.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as arrow_fs
import pyarrow.parquet as pq

from appliance.reports.errors import PlaceUnreachable, ReportError
from appliance.reports.places.hadoop import have_hadoops_classes
from appliance.settings.lake_place import StoreAddress

OWNER = "owner"  # beside the manifest's entries, here and there
ENTRIES = "_log"


@functools.lru_cache(maxsize=8)
def connected(place: StoreAddress) -> tuple[arrow_fs.FileSystem, str]:
    """The file system, and the place's path in it. Raises PlaceUnreachable."""
    options = f"?{place.options}" if place.options else ""
    if place.scheme == "hdfs":
        have_hadoops_classes()
    with _told(place.address):
        file_system, path = arrow_fs.FileSystem.from_uri(place.address + options)
    return file_system, path.rstrip("/")


@contextlib.contextmanager
def _told(address: str) -> Iterator[None]:
    """Have what a store refuses say which store it was, and what to look at."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as refusal:
        raise PlaceUnreachable(f"{address}: {_first_line(refusal)}. {_advice(address)}") from refusal


def _first_line(refusal: BaseException) -> str:
    return str(refusal).strip().splitlines()[0].rstrip(".") if str(refusal).strip() else type(refusal).__name__


def _advice(address: str) -> str:
    if address.startswith("hdfs:"):
        return (
            "Look at report_lake and the name node. HDFS needs Hadoop's native library, libhdfs.so, where reports run: "
            "HADOOP_HOME, or ARROW_LIBHDFS_DIR, says where it is"
        )
    return (
        "Look at report_lake, the server, the bucket, and the keys in the environment or in AWS's file of credentials"
    )


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """The files of the lake in `folder`, below the place."""

    place: StoreAddress
    folder: str

    @property
    def address(self) -> str:
        return f"{self.place.address}/{self.folder}"

    def stage(self, table: pa.Table, date: str, span: tuple[int, int], how: Mapping[str, Any]) -> tuple[str, int]:
        """Written whole into memory, then sent: so nothing that ends early looks like a file."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, **how)
        data = sink.getvalue()
        path = f"data/date={date}/{span[0]:020}-{span[1]:020}-{secrets.token_hex(8)}.parquet"
        self._write(path, data)
        return path, data.size

    def keep(self, name: str, path: str) -> str:
        return name

    def settle(self, paths: Collection[str]) -> None:
        """A store has what it said it has."""

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        file_system, root = self._root()
        with _told(self.address):
            return pq.ParquetFile(f"{root}/{path}", filesystem=file_system).read(columns=columns)

    def url(self, path: str) -> str:
        scheme, _, rest = self.address.partition("://")
        return f"{'s3a' if scheme == 's3' else scheme}://{rest}/{path}"

    def paths(self) -> Iterator[str]:
        for path in self.listed("data"):
            if path.startswith("data/date=") and path.endswith(".parquet"):
                yield path

    def delete(self, path: str) -> None:
        """Make sure that it is not there. HDFS names no reason why it did not delete, so that is looked up then."""
        file_system, root = self._root()
        with _told(self.address), contextlib.suppress(FileNotFoundError):
            try:
                file_system.delete_file(f"{root}/{path}")
            except OSError:
                if file_system.get_file_info(f"{root}/{path}").type != arrow_fs.FileType.NotFound:
                    raise

    def clear(self) -> None:
        """What was staged is not told apart from the rest: it is not listed."""

    def claim(self, entries: Path) -> None:
        self._own(entries)
        here = {path.name for path in entries.glob("*.json")}
        there = {path.rpartition("/")[2] for path in self.listed(ENTRIES) if path.endswith(".json")}
        if newer := {name for name in there - here if not here or name > max(here)}:
            raise ReportError(
                f"{self.address}: {len(newer)} entries of its manifest are not in {entries}, which has been put back "
                f"to an earlier time; copy them from {ENTRIES}/ there, then run the report again"
            )
        for name in sorted(here - there):
            self.publish(name, (entries / name).read_bytes())
        for name in sorted(there - here):
            self.retract(name)

    def publish(self, name: str, data: bytes) -> None:
        self._write(f"{ENTRIES}/{name}", data)

    def retract(self, name: str) -> None:
        self.delete(f"{ENTRIES}/{name}")

    def _own(self, entries: Path) -> None:
        """Raises ReportError when the lake in the store is another data folder's."""
        owner = entries / OWNER
        there = self._owner_there()
        if there is not None and (not owner.exists() or owner.read_text() != there):
            raise ReportError(
                f"{self.address} belongs to another data folder: give this one a place of its own with report_lake. "
                f"If that folder is lost, copy {self.address}/{ENTRIES}/ to {entries} to go on with it here"
            )
        if not owner.exists():
            owner.write_text(secrets.token_hex(16))
        if there is None:
            self._write(f"{ENTRIES}/{OWNER}", owner.read_bytes())

    def _owner_there(self) -> str | None:
        file_system, root = self._root()
        with _told(self.address):  # opened, not looked up: without its name node HDFS says that nothing is there
            try:
                with file_system.open_input_stream(f"{root}/{ENTRIES}/{OWNER}") as stream:
                    return str(stream.read(), "ascii", "replace")
            except FileNotFoundError:
                return None

    def listed(self, folder: str) -> Iterator[str]:
        """Every file in a folder of the lake."""
        file_system, root = self._root()
        wanted = arrow_fs.FileSelector(f"{root}/{folder}", allow_not_found=True, recursive=True)
        with _told(self.address):
            found = file_system.get_file_info(wanted)
        for info in found:
            if info.type == arrow_fs.FileType.File:
                yield info.path.removeprefix(f"{root}/")

    def _write(self, path: str, data: bytes | pa.Buffer) -> None:
        file_system, root = self._root()
        with _told(self.address):
            if self.place.scheme != "s3":  # which has no folders
                file_system.create_dir(f"{root}/{path}".rpartition("/")[0])
            with file_system.open_output_stream(f"{root}/{path}") as stream:
                stream.write(data)

    def _root(self) -> tuple[arrow_fs.FileSystem, str]:
        file_system, path = connected(self.place)
        return file_system, f"{path}/{self.folder}"
