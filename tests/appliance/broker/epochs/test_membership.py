"""Which store a folder is, and since when its log has lost nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from appliance.broker.epochs import membership
from appliance.broker.epochs.membership import FILE_NAME, Membership, MembershipFile
from appliance.errors import StartError
from appliance.failover.own import Doubt


def opened(root: Path, *, is_cut: bool = False, is_wanted: bool = True) -> MembershipFile:
    file = MembershipFile(root)
    file.open(is_wanted=is_wanted, is_cut=is_cut)
    return file


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the kernel tells its boot."""
    path = tmp_path / "boot_id"
    path.write_text("first\n")
    monkeypatch.setattr(membership, "BOOT_ID", path)
    return path


def test_a_killed_process_and_a_clean_stop_keep_the_boot_and_a_power_cut_does_not(
    tmp_path: Path, machine: Path
) -> None:
    first = opened(tmp_path).membership
    assert first.store and first.boot and not first.number
    file = opened(tmp_path)  # killed before
    assert file.membership.boot == first.boot
    file.closed()
    machine.write_text("second")
    assert opened(tmp_path).membership.boot == first.boot  # stopped, then the machine started anew
    machine.write_text("third")
    after = opened(tmp_path).membership
    assert after.boot != first.boot and after.store == first.store
    MembershipFile(tmp_path)  # a clean stop later does not bring the proof of before back
    file = opened(tmp_path)
    file.closed()
    assert opened(tmp_path).membership.boot == after.boot


def test_a_log_that_was_cut_is_of_a_new_boot(tmp_path: Path, machine: Path) -> None:
    boot = opened(tmp_path).membership.boot
    assert opened(tmp_path, is_cut=True).membership.boot != boot


def test_a_log_that_the_disk_did_not_take_is_of_a_new_boot(tmp_path: Path, machine: Path) -> None:
    file = opened(tmp_path)
    file.doubted(Doubt.DISK)
    after = opened(tmp_path).membership
    assert after.boot != file.membership.boot and after.doubt is Doubt.DISK


def test_what_a_boot_began_with_stays_over_restarts_until_the_next_one(tmp_path: Path, machine: Path) -> None:
    file = opened(tmp_path)
    file.doubted(Doubt.OLDER)
    assert opened(tmp_path, is_cut=True).membership.doubt is Doubt.OLDER
    assert opened(tmp_path).membership.doubt is Doubt.OLDER
    assert opened(tmp_path, is_cut=True).membership.doubt is Doubt.NONE


def test_a_copy_of_an_open_stores_folder_is_of_a_new_boot_and_one_of_a_closed_store_is_not(
    tmp_path: Path, machine: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, copy, closed = tmp_path / "store", tmp_path / "copy", tmp_path / "closed"
    store.mkdir()
    file = opened(store)
    shutil.copytree(store, copy)
    beside = opened(copy).membership
    assert beside.boot != file.membership.boot and beside.doubt is Doubt.COPY
    assert [vars(each)["event"] for each in caplog.records] == ["store_copied"]
    assert opened(copy).membership == beside  # killed before
    assert opened(store).membership == file.membership
    file.closed()
    shutil.copytree(store, closed)
    assert opened(closed).membership.boot == file.membership.boot


def test_the_file_of_an_earlier_version_is_of_no_folder(tmp_path: Path, machine: Path) -> None:
    file = opened(tmp_path)
    path = tmp_path / "config" / FILE_NAME
    earlier = {name: value for name, value in json.loads(path.read_bytes()).items() if name not in ("folder", "doubt")}
    path.write_text(json.dumps(earlier))
    assert opened(tmp_path).membership == file.membership


def test_a_kernel_that_tells_no_boot_counts_each_start_as_a_new_one(tmp_path: Path, machine: Path) -> None:
    machine.unlink()
    assert opened(tmp_path).membership.boot != opened(tmp_path).membership.boot


def test_without_etcd_no_file_is_made_but_one_that_is_there_is_kept_true(tmp_path: Path, machine: Path) -> None:
    file = opened(tmp_path, is_wanted=False)
    file.closed()
    assert file.membership == Membership() and not (tmp_path / "config").exists()
    file = opened(tmp_path)
    file.joined("group", 3)
    file.closed()
    machine.write_text("second")
    opened(tmp_path, is_wanted=False)  # a while without etcd, that ended with the power
    machine.write_text("third")
    after = opened(tmp_path).membership
    assert after.boot != file.membership.boot and (after.group, after.number) == ("group", 3)


@pytest.mark.parametrize("text", ["{", "[]", '{"store": "", "group": "", "number": 0, "boot": "b", "machine": ""}'])
def test_a_damaged_file_stops_the_start(tmp_path: Path, machine: Path, text: str) -> None:
    opened(tmp_path)
    for name in (FILE_NAME, FILE_NAME + ".bak"):
        (tmp_path / "config" / name).write_text(text)
    with pytest.raises(StartError, match="member"):
        opened(tmp_path)


def test_the_file_is_closed_only_by_a_stop(tmp_path: Path, machine: Path) -> None:
    file = opened(tmp_path)
    path = tmp_path / "config" / FILE_NAME
    assert json.loads(path.read_bytes())["is_closed"] is False
    file.closed()
    assert json.loads(path.read_bytes())["is_closed"] is True
