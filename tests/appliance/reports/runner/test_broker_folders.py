"""Which folders a report reads: what each broker's properties file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.reports.runner.broker_folders import brokers_in


@pytest.mark.parametrize(
    ("lines", "folders"),
    [
        ("", ["store/commitlog"]),
        ("storePathRootDir=elsewhere", ["elsewhere/commitlog"]),
        ("storePathCommitLog=a, b", ["a", "b"]),
        ("readOnlyCommitLogStorePaths=old", ["store/commitlog", "old"]),
        ("storePathCommitLog=a,b\nreadOnlyCommitLogStorePaths=b,old", ["a", "b", "old"]),
    ],
)
def test_all_folders_of_a_commit_log_are_read(tmp_path: Path, lines: str, folders: list[str]) -> None:
    home = tmp_path / "brokers" / "broker-a"
    home.mkdir(parents=True)
    (home / "broker.properties").write_text(f"# by hand\n{lines}\n")
    (broker,) = brokers_in(tmp_path)
    assert broker.broker_name == "broker-a"
    assert broker.commit_log_folders == tuple(home / folder for folder in folders)
    assert not broker.has_log


def test_a_broker_calls_itself_what_its_file_says(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "brokers" / name).mkdir(parents=True)
        (tmp_path / "brokers" / name / "broker.properties").write_text(f"brokerName=broker-{name}\n")
    assert [broker.broker_name for broker in brokers_in(tmp_path)] == ["broker-one", "broker-two"]


def test_a_slaves_copies_are_not_counted_again(tmp_path: Path) -> None:
    for name, lines in (("broker-a", ""), ("broker-a-2", "brokerRole=SLAVE\nbrokerId=1\n")):
        (tmp_path / "brokers" / name).mkdir(parents=True)
        (tmp_path / "brokers" / name / "broker.properties").write_text(f"brokerName=broker-a\n{lines}")
    [broker] = brokers_in(tmp_path)
    assert broker.commit_log_folders[0].is_relative_to(tmp_path / "brokers" / "broker-a")
