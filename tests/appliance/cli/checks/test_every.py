"""The checks before the start: each complaint is one sentence with its fix. And who shows which."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from appliance.cli.checks import folder, machine, network, ports, root, start
from appliance.cli.checks.every import CHECKS, At, before_start, look
from appliance.cli.up import with_real_ports
from appliance.process.data_folder import DataFolderLock
from appliance.process.local_etcd import LocalEtcd
from appliance.settings.appliance_config import ApplianceConfig
from store.base.config import MessageStoreConfig
from store.upkeep.disk_space import DiskSpace

GIB = 1 << 30


def make_config(folder: Path, **changes: object) -> ApplianceConfig:
    free = {"http_port": 0, "namesrv_port": 0, "broker_port": 0, "allow_root": True}
    return with_real_ports(ApplianceConfig(**({"data": folder} | free | changes)))  # type: ignore[arg-type]


def test_a_machine_that_is_ready_has_nothing_fatal(tmp_path: Path) -> None:
    assert not [found for found in before_start(make_config(tmp_path)) if found.is_fatal]


def test_without_etcd_replicas_start_as_long_as_nothing_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    (found,) = start.check_replicas(make_config(tmp_path, replicas=3))
    assert not found.is_fatal and "no etcd on this machine" in found.sentence and "promotes" in found.sentence
    assert not list(start.check_replicas(make_config(tmp_path)))
    (tmp_path / "etcd").mkdir()
    (tmp_path / "etcd" / "node.json").write_text(LocalEtcd("/usr/bin/etcd", 1, 2).to_json())
    (found,) = start.check_replicas(make_config(tmp_path, replicas=3))
    assert found.is_fatal and "has the brokers' record" in found.sentence
    (found,) = start.check_replicas(make_config(tmp_path))
    assert found.is_fatal and "start with --replicas 3" in found.sentence


def test_root_is_refused_unless_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (found,) = root.check_user(make_config(tmp_path, allow_root=False))
    assert found.is_fatal and "--user NAME" in found.sentence and "--allow-root" in found.sentence
    assert not list(root.check_user(make_config(tmp_path)))
    assert not list(root.check_user(make_config(tmp_path, allow_root=False, user="someone")))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not list(root.check_user(make_config(tmp_path, allow_root=False)))


def test_of_an_appliance_that_runs_its_owner_counts_and_not_who_asks(tmp_path: Path) -> None:
    (tmp_path / "gantry.lock").write_text("1\n")  # init is root's
    (found,) = root.check_owner(make_config(tmp_path, allow_root=False))
    assert not found.is_fatal and "runs as root" in found.sentence
    assert not list(root.check_owner(make_config(tmp_path)))
    (tmp_path / "gantry.lock").write_text("a process that is unknown")
    assert not list(root.check_owner(make_config(tmp_path, allow_root=False)))


def test_a_look_at_a_folder_without_a_lock_makes_none(tmp_path: Path) -> None:
    assert not list(folder.check_lock(make_config(tmp_path)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "shown"), [(b"deploy/upgrade\n", "`deploy/upgrade`"), (b"\xff\n", "`\ufffd`")])
def test_an_upgrade_under_way_is_named_even_where_its_command_is_no_text(
    tmp_path: Path, text: bytes, shown: str
) -> None:
    (tmp_path / "before-upgrade").mkdir()
    (tmp_path / folder.UPGRADE_UNDER_WAY).write_bytes(text)
    (found,) = folder.check_formats(make_config(tmp_path))
    assert found.is_fatal and shown in found.sentence


def test_a_taken_port_names_its_holder_and_the_option(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config = make_config(tmp_path, namesrv_port=port)
        (found,) = ports.check_ports(config)
    assert found.sentence.startswith(f"Port {port} (name server) is taken by process {os.getpid()} (")
    assert found.sentence.endswith("choose another port with --namesrv-port N.")


def test_a_folder_that_can_not_be_written_is_named_with_the_fix() -> None:
    (found,) = folder.check_folder(ApplianceConfig(data=Path("/proc/my gantry")))
    assert "/proc/my gantry can't be written" in found.sentence
    assert " '/proc/my gantry'`, or name another one with --data" in found.sentence


@pytest.mark.parametrize(
    ("used_gib", "total_gib", "is_fatal", "words"),
    [
        (99, 100, True, "Only 1.0 GiB are free"),
        (88, 100, False, "88% full: above 85% brokers that filled it delete their oldest files, above 90% they refuse"),
        (15, 20, False, "Only 5.0 GiB are free"),
    ],
)
def test_a_full_disk_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used_gib: int, total_gib: int, is_fatal: bool, words: str
) -> None:
    monkeypatch.setattr(folder, "disk_space", lambda path: DiskSpace(used_gib * GIB, total_gib * GIB))
    (found,) = folder.check_space(tmp_path / "not" / "there" / "yet", [MessageStoreConfig()])
    assert found.is_fatal == is_fatal
    assert words in found.sentence


def test_the_brokers_own_marks_and_files_decide_about_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "disk_space", lambda path: DiskSpace(98 * GIB, 100 * GIB - 1))
    config = make_config(tmp_path, brokers=2)
    (fatal,) = folder.check_space(tmp_path, folder.store_settings(config))
    assert fatal.is_fatal and "needs 2.0 GiB" in fatal.sentence
    for name, text in (("broker-a", "mappedFileSizeCommitLog=16777216\n"), ("broker-b", "no setting")):
        (config.brokers_folder / name).mkdir(parents=True)
        (config.brokers_folder / name / "broker.properties").write_text(text)
    (fatal,) = folder.check_space(tmp_path, folder.store_settings(config))
    assert fatal.is_fatal, "the file that can't be read counts as the defaults"
    small = "mappedFileSizeCommitLog=16777216\nrocketmq.broker.diskSpaceWarningLevelRatio=0.99\n"
    (config.brokers_folder / "broker-b" / "broker.properties").write_text(small)
    (told,) = folder.check_space(tmp_path, folder.store_settings(config))
    assert not told.is_fatal and "above 90% they refuse" in told.sentence
    marks = "rocketmq.broker.diskSpaceCleanForciblyRatio=0.99\n" + small
    for name in ("broker-a", "broker-b"):
        (config.brokers_folder / name / "broker.properties").write_text(marks)
    (told,) = folder.check_space(tmp_path, folder.store_settings(config))
    assert "watch the disk" in told.sentence


def test_s01_an_open_bind_needs_to_be_said_twice() -> None:
    (refused,) = network.check_bind(ApplianceConfig(bind="0.0.0.0"))
    (allowed,) = network.check_bind(ApplianceConfig(bind="0.0.0.0", allow_open_network=True))
    assert refused.is_fatal
    assert "--allow-open-network" in refused.sentence
    assert not allowed.is_fatal
    assert not list(network.check_bind(ApplianceConfig(bind="127.0.0.1")))


def test_s01_accounts_make_an_open_bind_possible_and_tls_makes_it_quiet() -> None:
    (told,) = network.check_bind(ApplianceConfig(bind="0.0.0.0", accounts=True))
    assert not told.is_fatal and "--tls-cert" in told.sentence
    assert not list(network.check_bind(ApplianceConfig(bind="0.0.0.0", accounts=True, tls_cert="/c.pem")))


def test_a_running_appliance_is_the_only_thing_told(tmp_path: Path) -> None:
    lock = DataFolderLock(tmp_path)
    lock.acquire()
    try:
        (found,) = before_start(make_config(tmp_path))
    finally:
        lock.release()
    assert found.is_fatal
    assert f"is in use by process {os.getpid()}" in found.sentence


def test_a_low_map_count_comes_with_the_command_that_raises_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "max_map_count"
    limit.write_text("1000\n")
    monkeypatch.setattr(machine, "MAP_COUNT", limit)
    (found,) = machine.check_map_count(ApplianceConfig(data=tmp_path))
    assert "sudo sysctl -w vm.max_map_count=655360" in found.sentence


def test_a_java_that_is_no_java_is_told(tmp_path: Path) -> None:
    (found,) = start.check_java(ApplianceConfig(data=tmp_path, java_home=str(tmp_path / "nothing")))
    assert not found.is_fatal
    assert "Reports can't be computed" in found.sentence


def test_a_fast_path_that_is_insisted_on_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "why_missing", lambda: "not compiled")
    (found,) = start.check_fast_path_wanted(ApplianceConfig(data=tmp_path, fast_path="on"))
    assert found.is_fatal
    assert found.sentence == "fast_path=on, but the compiled fast path is not there: not compiled."
    assert not list(start.check_fast_path_wanted(ApplianceConfig(data=tmp_path)))
    monkeypatch.setattr(start, "why_missing", lambda: "")
    assert not list(start.check_fast_path_wanted(ApplianceConfig(data=tmp_path, fast_path="on")))


def test_free_ports_leave_room_for_every_broker(tmp_path: Path) -> None:
    config = make_config(tmp_path, brokers=3)
    wanted = [port for _, port, _ in ports.wanted_ports(config)]
    assert len(set(wanted)) == len(wanted) == 2 + 2 * 3 + 1
    assert all(ports.is_port_free("127.0.0.1", port) for port in wanted)


def test_what_can_be_opened_is_told_with_the_command_that_raises_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda which: (256, 1024))
    (found,) = machine.check_open_files(ApplianceConfig(data=tmp_path))
    assert not found.is_good and "only 1024 files" in found.sentence and "ulimit -n 65536" in found.sentence
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.setrlimit", lambda which, limits: raised.append(limits))
    machine.raise_open_files()
    assert raised == [(1024, 1024)]


def test_each_check_stands_in_the_list_once_and_someone_shows_it() -> None:
    """So a check that is written is shown, and what one of them says the others say, too."""
    listed = [check for check, _ in CHECKS]
    assert len(set(listed)) == len(listed) and all(where for _, where in CHECKS)
    beside = {folder.check_lock, folder.check_formats, folder.check_space}  # before all others; part of check_folder
    written = {
        value
        for module in (folder, machine, network, ports, root, start)
        for name, value in vars(module).items()
        if name.startswith("check_") and value.__module__ == module.__name__
    }
    assert written - beside == set(listed)


def test_start_doctor_and_page_say_the_same_of_the_machine(tmp_path: Path) -> None:
    config = make_config(tmp_path, brokers=2)
    clock = "clock"  # its sentence has the time
    said = {at: {one.text for one in look(config, at) if clock not in one.text} for at in At}
    assert said[At.PAGE] <= said[At.START] | said[At.DOCTOR]
    assert said[At.RUNNING] <= said[At.START]
