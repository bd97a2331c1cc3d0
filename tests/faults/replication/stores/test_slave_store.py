"""What happens to a slave's store while it copies, or rests: retention, torn files, damaged records.

At the end both logs are read byte by byte: nothing acknowledged is missing, and what both have is the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.bench.peer import PeerError
from tests.faults.kit.replicas import FILES, TOPIC, Replica, figures, is_same, runtime_info
from tests.faults.replication.history import check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.faults.replication.stores.store_files import delete_expired, log_files
from tests.harness import LocalCluster
from tests.waiting import wait_until

FILE_BYTES = 1 << 20
BODY_BYTES = 4000


@pytest.fixture
def master(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "master", broker_properties=FILES | {"slavesEnable": "true"}) as cluster:
        yield cluster


@pytest.fixture
def slave(master: LocalCluster, tmp_path: Path) -> Iterator[LocalCluster]:
    peer = Replica(tmp_path / "slave", master, 1, FILES)
    peer.start_broker()
    wait_until(lambda: runtime_info(peer).get("slaveState") == "copying")
    yield peer
    peer.stop()


def fill(recorder: Recorder, master: LocalCluster, megabytes: int) -> None:
    end = int(figures(master)["commitLogMaxOffset"]) + (megabytes << 20)
    wait_until(lambda: int(runtime_info(master).get("commitLogMaxOffset", "0")) >= end, within_s=600 + megabytes)


def assert_same_where_both_are(master: LocalCluster, slave: LocalCluster, recorder: Recorder) -> None:
    wait_until(lambda: is_same(master, slave), within_s=600)
    logs = [read_log(peer.broker_address, peer.store) for peer in (master, slave)]
    kept = max(log.begin for log in logs)
    sends = [send for send in recorder.sends if send.physical_offset < 0 or send.physical_offset >= kept]
    assert check(sends, logs, slave.broker_address) == []


@pytest.mark.slow
def test_a_slave_whose_next_bytes_are_deleted_says_so_and_keeps_a_whole_log(
    master: LocalCluster, slave: LocalCluster
) -> None:
    with Recorder("p", TOPIC, lambda: master.broker_address, body_bytes=BODY_BYTES) as recorder:
        recorder.more()
        wait_until(lambda: is_same(master, slave))
        slave.kill_broker()
        before = read_log("slave", slave.store)
        fill(recorder, master, 4)
        begin = delete_expired(master, 2)
        assert begin > before.end
        slave.start_broker()
        wait_until(lambda: runtime_info(slave).get("slaveState") == "left behind")
        assert "is deleted there" in figures(slave)["slaveStateWhy"]
        recorder.more()
    assert read_log("slave", slave.store).data == before.data


def half_the_file(path: Path) -> None:
    """What a tool does that truncates in place: the broker's mapping ends before what it has written."""
    os.truncate(path, FILE_BYTES // 2)


def zeroed_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(bytes(4096))


def garbage_at_the_end(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(FILE_BYTES - 4096)
        file.write(os.urandom(4096))


def unlinked(path: Path) -> None:
    path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("is_last", [True, False], ids=["newest file", "file before it"])
@pytest.mark.parametrize("tear", [half_the_file, zeroed_page, garbage_at_the_end, unlinked])
def test_files_torn_under_a_running_slave_never_make_its_log_another_one_silently(
    master: LocalCluster, slave: LocalCluster, tear: Callable[[Path], None], is_last: bool
) -> None:
    """After a start that reads all, it has the master's bytes again, or it says why it does not follow or start.

    Without its checkpoint: what that says is on disk is not read again, and a slow run comes past the torn page.
    """
    with Recorder("p", TOPIC, lambda: master.broker_address, body_bytes=BODY_BYTES) as recorder:
        fill(recorder, master, 3)
        wait_until(lambda: is_same(master, slave))
        tear(log_files(slave)[-1 if is_last else -2])
        recorder.more(10)
        slave.kill_broker()
        (slave.store / "checkpoint").unlink(missing_ok=True)
        try:
            slave.start_broker()
        except PeerError as exc:
            assert "commitlog" in str(exc)
            return
        recorder.more(10)
    wait_until(lambda: runtime_info(slave).get("slaveState") not in ("connecting", "comparing logs", None))
    if figures(slave)["slaveState"] == "copying":
        assert_same_where_both_are(master, slave, recorder)
    else:
        assert figures(slave)["slaveStateWhy"] != "none"
