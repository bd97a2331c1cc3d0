"""When Java is told to write Spark's classes to a file, when to read it, and which files stay."""

from __future__ import annotations

from pathlib import Path

from appliance.reports.java import Java
from appliance.reports.sessions.class_archive import READ, WRITE, ClassArchive


def a_java(folder: Path, *, with_archive: bool = True) -> Java:
    server = folder / "lib" / "server"
    server.mkdir(parents=True)
    if with_archive:
        (server / "classes.jsa").write_bytes(b"")
    return Java(folder, 17, "test")


def test_an_archive_is_written_once_and_read_from_then_on(tmp_path: Path) -> None:
    java, folder = a_java(tmp_path / "java"), tmp_path / "jvm"
    archive = ClassArchive(folder, java)
    assert archive.options(may_write=False) == ""
    option = archive.options(may_write=True)
    assert option.startswith(WRITE)
    archive.keep()  # the session was killed: there is none
    assert archive.options(may_write=True) == option
    Path(option.removeprefix(WRITE)).write_bytes(b"classes")
    (folder / "classes-of-another-java.jsa").write_bytes(b"old")
    archive.keep()
    assert archive.options(may_write=True) == archive.options(may_write=False) == f"{READ}{archive.path}"
    assert [path.name for path in folder.glob("*.jsa*")] == [archive.path.name]
    assert list(archive.conf_folder.iterdir()) == []


def test_another_java_has_an_archive_of_its_own_and_one_without_classes_has_none(tmp_path: Path) -> None:
    one, two = (ClassArchive(tmp_path / "jvm", a_java(tmp_path / name)) for name in ("one", "two"))
    assert one.path != two.path
    bare = ClassArchive(tmp_path / "jvm", a_java(tmp_path / "bare", with_archive=False))
    assert bare.options(may_write=True) == ""
