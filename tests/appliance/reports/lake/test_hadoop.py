"""What HDFS needs of this machine: Hadoop's classes, which Spark has. Its library need not be here."""

from __future__ import annotations

import os
import zipfile

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from appliance.reports.lake.place import have_hadoops_classes

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
