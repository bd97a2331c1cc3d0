"""What HDFS needs of this machine: Hadoop's classes, which Spark has. Its library need not be here."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyarrow import fs

from appliance.reports.errors import PlaceUnreachable
from appliance.reports.places import object_store
from appliance.reports.places.hadoop import have_hadoops_classes
from appliance.reports.places.object_store import StoreFiles
from appliance.settings.lake_place import StoreAddress

WANTED = (  # what libhdfs asks the JVM for when it starts, and what a client opens a file with
    "org/apache/hadoop/fs/FileSystem.class",
    "org/apache/hadoop/hdfs/DistributedFileSystem.class",
    "org/apache/commons/lang3/exception/ExceptionUtils.class",
    "org/slf4j/Logger.class",
)


def test_sparks_jars_and_hadoops_settings_are_the_class_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLASSPATH", "")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    have_hadoops_classes()
    settings, *jars = os.environ["CLASSPATH"].split(os.pathsep)
    assert settings == "/etc/hadoop"
    classes: set[str] = set()
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            classes.update(archive.namelist())
    assert classes.issuperset(WANTED)


def test_a_class_path_of_the_operators_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLASSPATH", "/opt/hadoop/conf:/opt/hadoop/client.jar")
    have_hadoops_classes()
    assert os.environ["CLASSPATH"] == "/opt/hadoop/conf:/opt/hadoop/client.jar"


class _NamesNoReason:
    """Arrow's file system over HDFS: what it could not delete is an error of input or output, whatever the reason."""

    def __init__(self, real: fs.FileSystem) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def delete_file(self, path: str) -> None:
        raise OSError(5, "HDFS delete failed. Detail: [errno 5] Input/output error")


class _WithoutNameNode:
    """The same while its name node is away: files are looked up and not found, listed and none, but not opened."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def get_file_info(self, wanted: str | fs.FileSelector) -> Any:
        return fs.FileInfo(wanted, fs.FileType.NotFound) if isinstance(wanted, str) else []

    def open_input_stream(self, path: str) -> Any:
        raise OSError(111, f"Opening HDFS file '{path}' failed. Detail: [errno 111] Connection refused")

    def open_output_stream(self, path: str) -> Any:
        self.written.append(path)
        raise OSError(111, "Connection refused")


def test_a_name_node_that_is_away_is_not_an_empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = _WithoutNameNode()
    monkeypatch.setattr(object_store, "connected", lambda place: (away, "/history"))
    files = StoreFiles(StoreAddress("hdfs://127.0.0.1:8020/history"), "lake/broker-a")
    with pytest.raises(PlaceUnreachable, match="Look at report_lake and the name node"):
        files.claim(tmp_path)
    assert not away.written and not list(tmp_path.iterdir()), "another data folder's lake may be there"


def test_what_is_gone_already_counts_as_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = StoreFiles(StoreAddress(f"file://{tmp_path}"), "lake/broker-a")
    (tmp_path / "lake" / "broker-a" / "_log").mkdir(parents=True)
    (tmp_path / "lake" / "broker-a" / "_log" / "there.json").write_text("{}")
    monkeypatch.setattr(object_store, "connected", lambda place: (_NamesNoReason(fs.LocalFileSystem()), str(tmp_path)))
    files.retract("gone.json")
    with pytest.raises(PlaceUnreachable, match="delete failed"):
        files.retract("there.json")
