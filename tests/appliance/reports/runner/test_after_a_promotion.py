"""Reports go on with the promoted slave's folder: each message that is there is counted once, none that was cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.log_ranges import ranges_of
from appliance.reports.runner.broker_folders import brokers_in
from appliance.reports.runner.cut_lake import cut_to_log
from appliance.reports.runner.sources import sources
from tests.appliance.reports.lakes import lake_in, offsets_in
from tests.appliance.reports.runner.promoted import EPOCH_1, FILE_BYTES, log_of, promoted, put_standing

pytest.importorskip("pyarrow", reason="the report stack is not installed")


def read_into(lake: Any, folder: Path, end: int | None = None, *, range_bytes: int = FILE_BYTES) -> None:
    """What ingest does, without Spark."""
    from appliance.reports.lake.range_reader import Target, copy_range
    from appliance.reports.lake.writer import LakeWriter

    log = CommitLogFiles([folder])
    files, position = log.files(), lake.position()
    target = Target(lake.table.place, lake.broker_name)
    with lake.table.writing():
        writer = LakeWriter(lake, files[0].start if position is None else position)
        to = log.valid_end() if end is None else end
        for pieces in ranges_of(files, writer.position, to, range_bytes=range_bytes, uncut=set()):
            writer.add(copy_range(pieces, target).stretches)
            writer.finish()


def bring_up_to_date(data: Path, lake: Any) -> None:
    [broker] = brokers_in(data)
    for source in sources(broker, lake):
        with lake.table.writing():
            cut_to_log(lake, CommitLogFiles(source.broker.commit_log_folders), source.broker.standing.epochs)
        read_into(lake, source.broker.commit_log_folders[0], source.end)


@pytest.mark.parametrize("range_bytes", [FILE_BYTES // 4, 1 << 20])
def test_what_only_the_lost_master_had_leaves_the_lake(tmp_path: Path, range_bytes: int) -> None:
    case, lake = promoted(tmp_path), lake_in(tmp_path)
    read_into(lake, log_of(tmp_path, "broker-a"), range_bytes=range_bytes)
    assert offsets_in(lake) == case.old
    bring_up_to_date(tmp_path, lake)
    assert offsets_in(lake) == case.all
    assert not lake.gaps()
    bring_up_to_date(tmp_path, lake)
    assert offsets_in(lake) == case.all, "once"


@pytest.mark.parametrize("read_before", [0, 10])
def test_what_lies_before_the_copy_is_read_from_the_lost_masters_folder(tmp_path: Path, read_before: int) -> None:
    case, lake = promoted(tmp_path), lake_in(tmp_path)
    if read_before:
        read_into(lake, log_of(tmp_path, "broker-a"), case.old[read_before])
    bring_up_to_date(tmp_path, lake)
    assert offsets_in(lake) == case.all
    assert not lake.gaps()


def test_the_promoted_slave_is_the_one_that_is_read_and_the_demoted_one_no_more(tmp_path: Path) -> None:
    promoted(tmp_path)
    [broker] = brokers_in(tmp_path)
    assert broker.store_folder.parent.name == "broker-a-2"
    assert [copy.store_folder.parent.name for copy in broker.copies] == ["broker-a"]
    epochs = [EPOCH_1, [2, 5, "bbbbbbbbbbbbbbbb"], [3, 9, "cccccccccccccccc"]]
    back = {"brokerRole": "SLAVE", "brokerId": 1, "instead": "ASYNC_MASTER 0"}
    put_standing(tmp_path, "broker-a", "", epochs, back)
    [broker] = brokers_in(tmp_path)
    assert broker.store_folder.parent.name == "broker-a-2", "a master by settings that follows another one"
    put_standing(tmp_path, "broker-a", "brokerId=0\nbrokerRole=SYNC_MASTER\n", epochs, back)
    [broker] = brokers_in(tmp_path)
    assert broker.store_folder.parent.name == "broker-a", "who edits the settings decides anew"


def test_another_log_without_an_epoch_that_tells_why_cuts_nothing(tmp_path: Path) -> None:
    case, lake = promoted(tmp_path, first_file=0), lake_in(tmp_path)
    read_into(lake, log_of(tmp_path, "broker-a"))
    path = tmp_path / "brokers" / "broker-a-2" / "store" / "config" / "epochs.json"
    document = json.loads(path.read_text())
    for epochs in ([EPOCH_1], [EPOCH_1, [2, case.old[-1] + 1, "bbbbbbbbbbbbbbbb"]]):
        path.write_text(json.dumps(document | {"epochs": epochs}))
        [broker] = brokers_in(tmp_path)
        with lake.table.writing():
            assert cut_to_log(lake, CommitLogFiles(broker.commit_log_folders), broker.standing.epochs) == 0
    assert offsets_in(lake) == case.old


def test_epochs_that_can_not_be_read_leave_the_role_to_the_settings(tmp_path: Path) -> None:
    promoted(tmp_path)
    (tmp_path / "brokers" / "broker-a-2" / "store" / "config" / "epochs.json").write_text("[")
    [broker] = brokers_in(tmp_path)
    assert broker.store_folder.parent.name == "broker-a"
