"""A backup of an appliance under load, restored elsewhere and counted; what is refused; what the second one costs."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.__main__ import main
from appliance.cli.backup import make, stores
from appliance.cli.backup.manifest import CONTENT, NAME, BackupError
from appliance.cli.backup.places import STAMP, FolderPlace
from tests.appliance.cli.backup.load import check_restored, under_load
from tests.conftest import missing


@dataclass
class Made:
    """Two backups of one appliance, and what had been acknowledged when the first one began."""

    folder: Path
    first: Path
    second: Path
    acknowledged: set[int]
    went_on: int  # messages that were sent while the first one was made


def newest_backup(folder: Path) -> Path:
    return folder / FolderPlace(folder).whole()[-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    data, folder = tmp_path_factory.mktemp("run") / "data", tmp_path_factory.mktemp("backups")
    with under_load(data) as load:
        acknowledged = set(load.acknowledged)
        assert main(["backup", str(folder), "--data", str(data)]) == 0
        went_on = len(load.acknowledged) - len(acknowledged)
        first = newest_backup(folder)
        first = first.rename(first.with_name("0-first"))  # two may be made within a second
        assert main(["backup", str(folder), "--data", str(data)]) == 0
        second = newest_backup(folder)
        assert second != first
    yield Made(folder, first, second, acknowledged, went_on)


def test_a_backup_under_load_has_all_that_was_acknowledged_before_it(made: Made, tmp_path: Path) -> None:
    assert made.went_on > 0, "the load stood still: this proves nothing"
    data = tmp_path / "elsewhere"
    assert main(["restore", str(made.first), "--data", str(data)]) == 0
    check_restored(data, made.acknowledged)


def test_the_second_backup_links_the_files_of_the_log_that_did_not_change(made: Made) -> None:
    logs = Path(CONTENT) / "brokers" / "broker-a" / "store" / "commitlog"
    first = {path.name: path.stat().st_ino for path in (made.first / logs).iterdir()}
    second = {path.name: path.stat().st_ino for path in (made.second / logs).iterdir()}
    assert len(first) >= 2
    same = {name for name in first if second[name] == first[name]}
    assert same == set(sorted(first)[:-1]), "all but the one that was being written"
    assert main(["restore", str(made.second), "--check"]) == 0


def test_secrets_and_database_are_in_it_and_readable_by_the_owner_alone(made: Made) -> None:
    manifest = FolderPlace(made.folder).manifest(made.first.name)
    assert manifest.database == "sqlite"
    assert {"dashboard/db.sqlite3", "dashboard/secret_key", "gantry.format"} <= set(manifest.files)
    assert not {name for name in manifest.files if name.startswith("logs/") or name.endswith("/lock")}
    modes = {path.stat().st_mode & 0o077 for path in made.first.rglob("*") if path.is_file()}
    assert modes == {0}


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", [NAME, f"{CONTENT}/dashboard/db.sqlite3", f"{CONTENT}/gantry.format"])
@pytest.mark.parametrize("damage", [flip, Path.unlink, lambda path: os.truncate(path, 1)], ids=["flip", "gone", "cut"])
def test_a_damaged_backup_is_refused_and_leaves_nothing(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, damage: Callable[[Path], None]
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(made.first, backup, ignore=shutil.ignore_patterns("commitlog", "consumequeue", "index"))
    damage(backup / name)
    assert main(["restore", str(backup), "--data", str(tmp_path / "data")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup"]
    assert any(word in capsys.readouterr().err for word in ("damaged", "has no whole backup"))


def test_a_folder_with_something_in_it_is_refused(made: Made, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert main(["restore", str(made.first), "--data", str(tmp_path)]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_root_restores_belongs_to_the_owner_of_the_empty_folder(made: Made, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        missing("root", "only root can give files to others")
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 12345, 12346)
    assert main(["restore", str(made.first), "--data", str(data)]) == 0
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (data, *data.rglob("*"))} == {(12345, 12346)}


def test_a_place_that_is_not_there_is_told_from_one_without_a_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, sentence in ((tmp_path, "has no whole backup"), (tmp_path / "nowhere", "is not there")):
        assert main(["restore", str(place), "--data", str(tmp_path / "data")]) == 1
        assert sentence in capsys.readouterr().err


def test_a_folder_in_the_data_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backup", str(tmp_path / "backups"), "--data", str(tmp_path)]) == 1
    assert "name a folder elsewhere" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["backup", "restore"])
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("hdfs://host:9000/backups", "name a folder or s3://BUCKET/PREFIX"),
        ("ftp://host/backups", "s3://BUCKET/PREFIX"),
        ("s3://key:word-not-shown@bucket/backups", "no keys in the address"),
    ],
)
def test_an_address_that_is_no_place_is_refused_without_its_keys(
    verb: str, place: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, place, "--data", str(tmp_path)]) != 0
    told = capsys.readouterr().err
    assert sentence in told and "word-not-shown" not in told
    assert list(tmp_path.iterdir()) == []


def test_accounts_and_their_modes_come_back(tmp_path: Path) -> None:
    data, folder, to = tmp_path / "data", tmp_path / "backups", tmp_path / "to"
    for name in ("gantry.format", "accounts/plain_acl.yml", "accounts/appliance.yml"):
        (data / name).parent.mkdir(exist_ok=True, parents=True)
        (data / name).write_text("1\n")
    assert main(["backup", str(folder), "--data", str(data)]) == 0
    assert main(["restore", str(folder), "--data", str(to)]) == 0
    found = {path.name: (path.read_text(), path.stat().st_mode & 0o777) for path in (to / "accounts").iterdir()}
    assert found == dict.fromkeys(("plain_acl.yml", "appliance.yml"), ("1\n", 0o600))


def test_no_log_is_copied_beyond_where_the_longest_of_its_group_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them grow meanwhile; a slave that was copied after its master would have more."""
    data, ends = tmp_path / "data", itertools.count(100, 100)
    for name in ("broker-a", "broker-a-2", "broker-b"):
        (data / "brokers" / name / "store").mkdir(parents=True)
    for module in (make, stores):
        monkeypatch.setattr(module, "log_end", lambda root: next(ends))
    assert main(["backup", str(tmp_path / "backups"), "--data", str(data)]) == 0
    found = FolderPlace(tmp_path / "backups").manifest(newest_backup(tmp_path / "backups").name)
    assert found.log_ends == {"broker-a": 200, "broker-a-2": 200, "broker-b": 300}


@pytest.mark.parametrize("has_etcd", [False, True])
def test_which_member_a_store_is_comes_back_with_the_etcd_that_has_it_on_record_alone(
    has_etcd: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, folder, to = tmp_path / "data", tmp_path / "backups", tmp_path / "to"
    config = Path("brokers") / "broker-a" / "store" / "config"
    members = [config / "member.json", config / "member.json.bak"]
    of_etcd = [Path("etcd") / "node.json"] if has_etcd else []
    for name in (Path("gantry.format"), config / "topics.json", *members, *of_etcd):
        (data / name).parent.mkdir(exist_ok=True, parents=True)
        (data / name).write_text("1\n")
    assert main(["backup", str(folder), "--data", str(data)]) == 0
    capsys.readouterr()
    assert main(["restore", str(folder), "--data", str(to)]) == 0
    assert (to / config / "topics.json").exists()
    assert [(to / name).exists() for name in members] == [has_etcd] * 2
    assert (f"left out: {members[0]}, {members[1]}. " in capsys.readouterr().out) is not has_etcd


def test_older_backups_go_when_so_many_are_kept(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "backups"
    data.mkdir()
    (data / "gantry.format").write_text("1\n")
    for name in ("1", "2", "3"):
        assert main(["backup", str(folder), "--data", str(data)]) == 0
        newest_backup(folder).rename(folder / name)
    assert main(["backup", str(folder), "--data", str(data), "--keep", "2"]) == 0
    assert len(list(folder.iterdir())) == 2


def test_on_a_disk_without_links_what_did_not_change_is_copied_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, to: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    place = FolderPlace(tmp_path)
    kept = place.put("1", "log", iter([b"kept"]), 8, 0)
    monkeypatch.setattr(os, "link", refuse)
    assert place.keep("2", "1", "log", kept) == kept
    copy = tmp_path / "2" / CONTENT / "log"
    assert copy.read_bytes() == b"kept" + bytes(4) and copy.stat().st_mode & 0o777 == 0o600
    (tmp_path / "1" / CONTENT / "log").write_bytes(b"lost")
    with pytest.raises(BackupError, match="is damaged"):
        place.keep("3", "1", "log", kept)


def test_what_an_interrupted_backup_left_goes_a_day_later(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "backups"
    data.mkdir()
    (data / "gantry.format").write_text("1\n")
    today = time.strftime(STAMP, time.gmtime(time.time() - 3600))
    for name in ("20260101T000000Z", today, "mine"):
        (folder / name).mkdir(parents=True)
    assert main(["backup", str(folder), "--data", str(data), "--keep", "1"]) == 0
    assert {path.name for path in folder.iterdir() if not (path / NAME).exists()} == {today, "mine"}
