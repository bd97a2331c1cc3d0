"""What a store knows of its epochs: several threads change it, and none takes back what another one wrote."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from appliance.broker.epochs.history import Epoch, Epochs
from appliance.broker.epochs.standing import Rival, Standing, StandingFile
from appliance.broker.replication.ha_client import followed
from appliance.broker.replication.handshake import Hello
from appliance.broker.replication.joint import MasterIsOver
from appliance.process.json_file import JsonFile

FIRST, SECOND = Epoch(1, 0, "one"), Epoch(2, 8671, "two")
MASTER = Hello(
    broker_name="a",
    role="SYNC_MASTER",
    address="host:2",
    epochs=Epochs((FIRST, SECOND), 2, "two"),
    begin=0,
    end=9000,
    group="",
    store="",
    boot="",
)


@pytest.fixture
def file(tmp_path: Path) -> StandingFile:
    (tmp_path / "config").mkdir()
    made = StandingFile(tmp_path)
    made.change(epochs=Epochs((FIRST,), 2, "two"))
    return made


def test_an_epoch_that_is_heard_of_while_its_master_is_followed_stays_in_the_history(
    file: StandingFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was lost: the slave took over later with a history that had a hole, and its old master did not follow."""
    writing, may_end = threading.Event(), threading.Event()
    write = JsonFile.write

    def slowly(written: JsonFile, content: bytes, number: int) -> None:
        writing.set()
        may_end.wait()
        write(written, content, number)

    monkeypatch.setattr(JsonFile, "write", slowly)
    follows = threading.Thread(target=lambda: file.update(lambda standing: followed(standing, MASTER)))
    follows.start()
    writing.wait()
    hears = threading.Thread(target=lambda: file.hear(2, "two"))
    hears.start()
    may_end.set()
    follows.join()
    hears.join()
    assert file.standing.epochs.history == (FIRST, SECOND)


def test_a_master_is_not_followed_when_a_later_epoch_was_heard_of_meanwhile(file: StandingFile) -> None:
    file.hear(3, "three")
    with pytest.raises(MasterIsOver):
        file.update(lambda standing: followed(standing, MASTER))
    assert (file.standing.epochs.highest, file.standing.epochs.highest_id) == (3, "three")
    assert StandingFile(file.path.parents[1]).load() == file.standing


@pytest.mark.parametrize(("heard", "is_kept"), [(1, True), (2, True), (3, False)])
def test_a_rival_is_over_with_a_later_epoch(file: StandingFile, heard: int, is_kept: bool) -> None:
    file.change(rival=Rival(2, "other", "host:3"))
    standing: Standing = file.hear(heard, "")
    assert (standing.rival is not None) is is_kept
    assert standing.epochs.highest == max(heard, 2)
