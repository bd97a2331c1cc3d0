"""A broker starts although one of its state files is damaged: from the file's backup, and it says so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.delivery.schedule import ScheduleMessageService
from appliance.process.json_file import StateFileError
from tests.harness import serving

GOLDEN = Path(__file__).parent / "golden_config"
FILES = ["topics", "subscriptionGroup", "consumerOffset", "delayOffset", "consumerFilter", "timer"]
SHAPES = {
    "topics": b'{"topicConfigTable":[1]}',
    "subscriptionGroup": b'{"subscriptionGroupTable":7}',
    "consumerOffset": b'{"offsetTable":{"T@G":"x"}}',
    "delayOffset": b'{"offsetTable":{"3":"x"}}',
    "consumerFilter": b'{"filterDataByTopic":{"T":{"groupFilterData":{"g":{"topic":"T"}}}}}',
    "timer": b'{"indexed":-1}',
}


@pytest.fixture(autouse=True)
def nothing_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look at the empty store would take the delay offsets back to 0: some time after the start."""
    monkeypatch.setattr(ScheduleMessageService, "deliver_slice", lambda service: 60.0)


def place(folder: Path, name: str) -> Path:
    return folder / "store" / ("timer/progress.json" if name == "timer" else f"config/{name}.json")


def prepare(folder: Path) -> None:
    """The files of a real broker, and our timer's."""
    shutil.copytree(GOLDEN, folder / "store" / "config")
    timer = place(folder, "timer")
    timer.parent.mkdir()
    timer.write_text('{"indexed":0,"seen":0,"deliveredMs":77}\n')


async def state_of(folder: Path) -> dict[str, Any]:
    """What a broker that starts on the folder knows."""
    async with serving(folder) as cluster:
        broker = cluster.broker
        return {
            "topics": sorted(broker.topics.configs),
            "subscriptionGroup": sorted(broker.groups.configs),
            "consumerOffset": {key: dict(queues) for key, queues in broker.offsets.table.items()},
            "delayOffset": dict(broker.schedule.offsets),
            "consumerFilter": len(broker.filters),
        }


def damage(path: Path, kind: str, name: str) -> None:
    path.write_bytes({"torn": path.read_bytes()[:-3], "wrong shape": SHAPES[name]}[kind])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["torn", "wrong shape"])
async def test_the_backup_of_each_file_stands_in_for_it(
    tmp_path: Path, name: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(tmp_path / "sound")
    prepare(tmp_path / "spoilt")
    path = place(tmp_path / "spoilt", name)
    backup = path.with_name(path.name + ".bak")
    shutil.copy(path, backup)
    damage(path, kind, name)
    expected = await state_of(tmp_path / "sound")
    caplog.clear()
    assert await state_of(tmp_path / "spoilt") == expected
    (warning,) = [record for record in caplog.records if getattr(record, "event", "") == "state_file_damaged"]
    assert (warning.__dict__["path"], warning.__dict__["backup"]) == (str(path), str(backup))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["torn", "wrong shape"])
async def test_without_a_backup_damage_is_an_error_that_names_the_file(tmp_path: Path, name: str, kind: str) -> None:
    prepare(tmp_path)
    path = place(tmp_path, name)
    damage(path, kind, name)
    before = path.read_bytes()
    with pytest.raises(ExceptionGroup) as raised:
        await state_of(tmp_path)
    wanted, others = raised.value.split(StateFileError)
    assert wanted is not None and others is None
    assert re.search(rf"{path.name}: is .*there is no {path.name}\.bak: repair the file", str(wanted.exceptions[0]))
    assert path.read_bytes() == before
