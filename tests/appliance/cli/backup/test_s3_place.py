"""Backups in a real server of S3: what is sent, what stays, what a kill leaves, and messages counted elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

arrow_fs = pytest.importorskip("pyarrow.fs", reason="the report stack is not installed")

from appliance.__main__ import main  # noqa: E402
from appliance.cli.backup.manifest import CONTENT, NAME  # noqa: E402
from appliance.cli.backup.places import STALE_S, find_backup, place_named, remove_older  # noqa: E402
from appliance.cli.backup.s3_place import S3Place  # noqa: E402
from appliance.reports.lake.place import connected  # noqa: E402
from appliance.settings.lake_place import place_of  # noqa: E402
from tests.appliance.cli.backup.load import check_restored, under_load  # noqa: E402
from tests.appliance.reports.s3_server import KEYS  # noqa: E402
from tests.waiting import wait_until  # noqa: E402

QUEUE = "queue/0"  # below a data folder: numbered files, of which all but the last are full


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder without brokers."""
    folder = tmp_path / "data"
    (folder / QUEUE).mkdir(parents=True)
    (folder / "gantry.format").write_text("1\n")
    for number in range(3):
        (folder / QUEUE / f"{number:020}").write_bytes(os.urandom(3000) + bytes(3 << 20))
    (folder / QUEUE / f"{3:020}").write_bytes(bytes(1 << 20))
    return folder


@pytest.fixture(autouse=True)
def a_second_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backups are named by the second; these follow each other faster."""
    second = iter(range(100))
    monkeypatch.setattr(
        "appliance.cli.backup.make.time.strftime", lambda form, now=None: f"20261124T1200{next(second):02}Z"
    )


def backed_up(bucket: str, data: Path, *options: str) -> tuple[S3Place, str]:
    assert main(["backup", bucket, "--data", str(data), *options]) == 0
    place, name = find_backup(bucket)
    assert isinstance(place, S3Place)
    return place, name


def objects(bucket: str) -> dict[str, int]:
    """Sizes by the paths below the place."""
    files, root = connected(place_of(bucket))  # type: ignore[arg-type]
    found = files.get_file_info(arrow_fs.FileSelector(root, recursive=True, allow_not_found=True))
    return {info.path.removeprefix(f"{root}/"): info.size for info in found if info.is_file}


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def restored(bucket: str, to: Path) -> dict[str, bytes]:
    assert main(["restore", bucket, "--data", str(to)]) == 0
    return content(to)


def test_a_backup_comes_back_as_it_was_without_its_zeros_on_the_way(bucket: str, data: Path, tmp_path: Path) -> None:
    _, name = backed_up(bucket, data)
    sizes = objects(bucket)
    assert sizes.pop(f"{name}/{NAME}") > 0
    assert sum(sizes.values()) < 10_000, "zeros at the end of files were sent"
    assert len(sizes) == 4, "a file of zeros alone was sent"
    assert main(["restore", bucket, "--check"]) == 0
    assert restored(bucket, tmp_path / "elsewhere") == content(data)


def test_the_second_one_sends_what_changed_and_each_comes_back(bucket: str, data: Path, tmp_path: Path) -> None:
    _, first = backed_up(bucket, data)
    before = content(data)
    (data / QUEUE / f"{3:020}").write_bytes(b"more")
    place, second = backed_up(bucket, data)
    sent = {name for name in objects(bucket) if name.startswith(second)}
    assert sent == {f"{second}/{name}" for name in (NAME, f"{CONTENT}/gantry.format", f"{CONTENT}/{QUEUE}/{3:020}")}
    assert place.manifest(second).files[f"{QUEUE}/{0:020}"].held_by == first
    assert restored(bucket, tmp_path / "second") == content(data)
    address, _, options = bucket.partition("?")
    assert restored(f"{address}/{first}?{options}", tmp_path / "first") == before


def test_what_later_backups_need_stays_until_they_go(bucket: str, data: Path, tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        (data / "gantry.format").write_text(text)
        place, name = backed_up(bucket, data, "--keep", "1")
        assert place.whole() == [name]
        assert len(objects(bucket)) == 5, "the manifest and four files"
        assert main(["restore", bucket, "--check"]) == 0
    for number in range(3):
        (data / QUEUE / f"{number:020}").unlink()
    _, name = backed_up(bucket, data, "--keep", "1")
    remove_older(place, 1, 2e9)
    assert set(objects(bucket)) == {f"{name}/{NAME}", f"{name}/{CONTENT}/gantry.format"}
    assert restored(bucket, tmp_path / "elsewhere") == content(data)


def test_a_killed_backup_leaves_the_older_one_usable(
    bucket: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, first = backed_up(bucket, data)
    before = content(data)
    for number in range(300):
        (data / f"file-{number}").write_bytes(os.urandom(20_000))
    command = [sys.executable, "-P", "-m", "appliance", "backup", bucket, "--data", str(data)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[4]) as running:
        wait_until(place.unfinished)
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    assert place.whole() == [first]
    assert restored(bucket, tmp_path / "older") == before
    backed_up(bucket, data)
    assert restored(bucket, tmp_path / "newer") == content(data)
    assert len(place.unfinished()) == 1
    remove_older(place, 2, 2e9 + STALE_S)
    assert place.unfinished() == []
    assert main(["restore", bucket, "--check"]) == 0


def test_a_backup_that_fails_takes_back_what_it_sent(
    bucket: str, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    backed_up(bucket, data)
    (data / "z").write_text("z")
    there = objects(bucket)

    def full(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("appliance.cli.backup.make.Manifest.encoded", full)
    assert main(["backup", bucket, "--data", str(data)]) == 1
    assert "the backup failed: no room" in capsys.readouterr().err
    assert objects(bucket) == there


def remove_first(bucket: str) -> None:
    files, root = connected(place_of(bucket))  # type: ignore[arg-type]
    files.delete_file(f"{root}/{find_backup(bucket)[1]}/{CONTENT}/gantry.format")


def change_first(bucket: str) -> None:
    files, root = connected(place_of(bucket))  # type: ignore[arg-type]
    with files.open_output_stream(f"{root}/{find_backup(bucket)[1]}/{CONTENT}/gantry.format") as stream:
        stream.write(b"2\n")


@pytest.mark.parametrize("damage", [remove_first, change_first])
def test_a_damaged_backup_is_refused_and_leaves_nothing(
    bucket: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[str], None]
) -> None:
    backed_up(bucket, data)
    damage(bucket)
    shutil.rmtree(data)
    for options in (["--check"], ["--data", str(data)]):
        assert main(["restore", bucket, *options]) == 1
        assert "damaged" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_one_that_was_removed_meanwhile_is_noticed(bucket: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, first = backed_up(bucket, data)
    copied = S3Place.put

    def put(*arguments: object) -> object:
        place.remove([first])
        return copied(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(S3Place, "put", put)
    assert main(["backup", bucket, "--data", str(data)]) == 1
    assert place.whole() == []


@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_a_store_that_refuses_is_named_without_the_keys(
    verb: str, bucket: str, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-wrong-secret")
    connected.cache_clear()
    assert main([verb, bucket, "--data", str(data)]) == 1
    told = capsys.readouterr().err
    assert "s3://lake/backups/" in told and "the keys in the environment" in told
    assert "a-wrong-secret" not in told and KEYS["AWS_ACCESS_KEY_ID"] not in told
    connected.cache_clear()


def test_without_the_packages_of_reports_the_fix_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "appliance.cli.backup.s3_place")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    assert main(["backup", "s3://bucket/backups", "--data", str(data)]) == 1
    assert "run `gantry install-reports`, or name a folder" in capsys.readouterr().err


def test_a_backup_under_load_comes_back_from_s3_with_all_that_was_acknowledged_before_it(
    bucket: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    with under_load(tmp_path / "run") as load:
        backed_up(bucket, load.data)
        acknowledged = set(load.acknowledged)
        place, newest = backed_up(bucket, load.data)
        assert len(load.acknowledged) > len(acknowledged), "the load stood still: this proves nothing"
    manifest = place.manifest(newest)
    held = {name for name, entry in manifest.files.items() if entry.held_by}
    assert sum("/commitlog/" in name for name in held) >= 2, "full files of the log were sent again"
    told = "".join(capfd.readouterr()) + manifest.encoded().decode()
    assert not [value for value in KEYS.values() if value in told]
    restored(bucket, elsewhere)
    check_restored(elsewhere, acknowledged)
    assert place_named(bucket).whole() == place.whole()


def test_a_copy_of_the_place_in_a_folder_is_restored_as_it_is(bucket: str, data: Path, tmp_path: Path) -> None:
    backed_up(bucket, data)
    (data / "gantry.format").write_text("later")
    backed_up(bucket, data)
    files, root = connected(place_of(bucket))  # type: ignore[arg-type]
    for name in objects(bucket):
        to = tmp_path / "copy" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(files.open_input_stream(f"{root}/{name}").read())
    assert restored(str(tmp_path / "copy"), tmp_path / "elsewhere") == content(data)
    assert main(["backup", str(tmp_path / "copy"), "--data", str(data)]) == 1, "its files are not all in one folder"
