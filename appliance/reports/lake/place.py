"""A place for Parquet files: a folder, S3 and what speaks its protocol, or HDFS. A task of Spark gets one along.

A file is written once, at the place where it may count, under a name that no other one has: no store has to move one,
or to refuse a name that is taken. In a folder it is synced before anything says that it counts.

Keys come from where AWS's programs look for them: the environment, its file of credentials, the machine's role.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as arrow_fs
import pyarrow.parquet as pq

from appliance.reports.errors import PlaceUnreachable, ReportError
from appliance.settings.lake_place import StoreAddress
from appliance.settings.replaced_file import sync_path

NEEDED = ("hadoop-client-", "commons-lang3-", "commons-logging-", "slf4j-", "jcl-over-slf4j-", "log4j-")


def have_hadoops_classes() -> None:
    """Set CLASSPATH for this process, which its JVM reads when it starts: Hadoop's settings, then Spark's jars."""
    from pyspark.find_spark_home import _find_spark_home  # tasks of Spark write to other places without it

    if os.environ.get("CLASSPATH"):
        return
    jars = sorted(str(jar) for jar in (Path(_find_spark_home()) / "jars").glob("*.jar") if jar.name.startswith(NEEDED))
    settings = filter(None, [os.environ.get("HADOOP_CONF_DIR")])  # name nodes behind one name, Kerberos
    os.environ["CLASSPATH"] = os.pathsep.join([*settings, *jars])


DAY = "date"


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file that does not count yet: rows of one day. low, high: the bounds of some of its columns."""

    path: str
    date: str
    rows: int
    size_bytes: int
    low: Mapping[str, Any]
    high: Mapping[str, Any]


@functools.lru_cache(maxsize=8)
def connected(place: StoreAddress, setting: str = "report_lake") -> tuple[arrow_fs.FileSystem, str]:
    """The file system, and the place's path in it. Raises PlaceUnreachable, which names the setting."""
    options = f"?{place.options}" if place.options else ""
    if place.scheme == "hdfs":
        have_hadoops_classes()
    with refused(place.address, setting):
        file_system, path = arrow_fs.FileSystem.from_uri(place.address + options)
    return file_system, path.rstrip("/")


@dataclass(frozen=True, slots=True)
class Place:
    """Paths are relative to it."""

    folder: Path | StoreAddress

    @property
    def address(self) -> str:
        return self.folder.address if isinstance(self.folder, StoreAddress) else str(self.folder)

    def below(self, *names: str) -> Place:
        if isinstance(self.folder, StoreAddress):
            return Place(StoreAddress("/".join([self.folder.address, *names]), self.folder.options))
        return Place(self.folder.joinpath(*names))

    def write(self, rows: pa.Table, date: str, bounds: Sequence[str], how: Mapping[str, Any]) -> NewFile:
        """Write a new file. bounds: columns of which its lowest and highest values are told. how: of pyarrow's writer.

        Raises FileNotFoundError where a folder is not there, OSError, PlaceUnreachable.
        """
        path = f"{DAY}={date}/{secrets.token_hex(16)}.parquet"
        send = self._put if isinstance(self.folder, Path) else self._send
        size_bytes = send(path, rows, how)
        ends = {name: pc.min_max(rows[name]).as_py() for name in bounds}
        low, high = ({name: both[end] for name, both in ends.items()} for end in ("min", "max"))
        return NewFile(path, date, rows.num_rows, size_bytes, low, high)

    def _put(self, path: str, rows: pa.Table, how: Mapping[str, Any]) -> int:
        assert isinstance(self.folder, Path)
        target = self.folder / path
        target.parent.mkdir(exist_ok=True)  # its parent must be there: on a cluster it says that this is the place
        try:
            pq.write_table(rows, target, **how)
            sync_path(target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return target.stat().st_size

    def _send(self, path: str, rows: pa.Table, how: Mapping[str, Any]) -> int:
        """Written whole into memory, then sent: so nothing that ends early looks like a file."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, **how)
        data = sink.getvalue()
        file_system, root = self._file_system()
        with refused(self.address):
            if not self.is_s3:  # which has no folders
                file_system.create_dir(f"{root}/{path}".rpartition("/")[0])
            with file_system.open_output_stream(f"{root}/{path}") as stream:
                stream.write(data)
        return int(data.size)

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A file's rows."""
        file_system, root = self._file_system()
        with refused(self.address):
            return pq.ParquetFile(f"{root}/{path}", filesystem=file_system).read(columns=columns)

    def there(self, paths: Sequence[str]) -> list[str]:
        """Those of the files that are there."""
        file_system, root = self._file_system()
        with refused(self.address):
            infos = file_system.get_file_info([f"{root}/{path}" for path in paths])
        return [path for path, info in zip(paths, infos, strict=True) if info.type == arrow_fs.FileType.File]

    def settle(self, paths: Iterable[str]) -> None:
        """Make the names of these files last. A store has what it said it has."""
        if isinstance(self.folder, Path):
            for folder in {(self.folder / path).parent for path in paths}:
                sync_path(folder)
            sync_path(self.folder)

    def spark_url(self, path: str) -> str:
        """What Spark calls the file."""
        if isinstance(self.folder, Path):
            return str(self.folder / path)
        scheme, _, rest = self.address.partition("://")
        return f"{'s3a' if scheme == 's3' else scheme}://{rest}/{path}"

    @property
    def is_s3(self) -> bool:
        return isinstance(self.folder, StoreAddress) and self.folder.scheme == "s3"

    @property
    def delta_url(self) -> str:
        """The address as Delta's library wants it: a URI's path is quoted. Raises ReportError."""
        if isinstance(self.folder, Path):
            if re.search("%[0-9A-Fa-f]{2}", str(self.folder)):
                raise ReportError(
                    f"{self.folder}: Delta's library takes a percent sign and two digits in a path for another "
                    "character; put the lake into a folder without them (report_lake)"
                )
            return str(self.folder)
        place, separator, path = self.address.partition("://")
        return f"{place}{separator}{quote(path, safe='/:')}"

    @property
    def delta_options(self) -> dict[str, str]:
        """The library's words for a store's options. Keys it finds where Arrow does."""
        if not self.is_s3:
            return {}
        assert isinstance(self.folder, StoreAddress)
        given = {name: values[-1] for name, values in parse_qs(self.folder.options).items()}
        scheme = given.get("scheme", "https")
        options = {"conditional_put": "etag"}  # of two commits of one number the store takes one
        options |= {"region": given["region"]} if "region" in given else {}
        if "endpoint_override" in given:
            options |= {"endpoint": f"{scheme}://{given['endpoint_override']}", "allow_http": str(scheme == "http")}
        return options

    def _file_system(self) -> tuple[arrow_fs.FileSystem, str]:
        if isinstance(self.folder, Path):
            return arrow_fs.LocalFileSystem(), str(self.folder)
        return connected(self.folder)


@contextlib.contextmanager
def refused(address: str, setting: str = "report_lake") -> Iterator[None]:
    """Have what a store refuses say which store it was, and what to look at. setting: where the address is given."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as refusal:
        if "://" not in address:
            raise
        raise PlaceUnreachable(f"{address}: {first_line(refusal)}. {_advice(address, setting)}") from refusal


def first_line(refusal: BaseException) -> str:
    return str(refusal).strip().splitlines()[0].rstrip(".") if str(refusal).strip() else type(refusal).__name__


def _advice(address: str, setting: str) -> str:
    if address.startswith("hdfs:"):
        return (
            f"Look at {setting} and the name node. HDFS needs Hadoop's native library, libhdfs.so, where reports run: "
            "HADOOP_HOME, or ARROW_LIBHDFS_DIR, says where it is"
        )
    return f"Look at {setting}, the server, the bucket, and the keys in the environment or in AWS's file of credentials"


def is_full(refusal: BaseException) -> bool:
    """Whether a disk took no more bytes, of any account or of this one."""
    if isinstance(refusal, OSError) and refusal.errno is not None:
        return refusal.errno in (errno.ENOSPC, errno.EDQUOT)
    return any(os.strerror(number) in str(refusal) for number in (errno.ENOSPC, errno.EDQUOT))  # Delta's library
