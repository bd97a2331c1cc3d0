"""A state file survives damage, crashes and a busy writer."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from pathlib import Path

import pytest

from appliance.process import json_file
from appliance.process.json_file import (
    ENTRIES_A_PART,
    Document,
    JsonFile,
    StateFileError,
    StateWriter,
    document_text,
    member_text,
)
from tests.waiting import aside

GOLDEN = Path(__file__).parents[1] / "broker" / "golden_config"


@pytest.fixture
def file(tmp_path: Path) -> JsonFile:
    return JsonFile(tmp_path / "config" / "state.json")


def test_there_is_nothing_before_the_first_write(file: JsonFile) -> None:
    assert file.load() is None


def test_what_was_written_is_read_back(file: JsonFile) -> None:
    file.write(b'{"a":1}', 1)
    assert file.load() == {"a": 1}


def test_the_text_before_the_last_is_kept_as_backup(file: JsonFile) -> None:
    file.write(b'{"a":1}', 1)
    file.write(b'{"a":2}', 2)
    assert JsonFile(file.path.with_name("state.json.bak")).load() == {"a": 1}
    assert not list(file.path.parent.glob("*.tmp"))


@pytest.mark.parametrize("damage", [b"", b"{torn", None])
@pytest.mark.parametrize("is_loaded_between", [False, True])
def test_a_mirrored_file_never_goes_back_to_an_earlier_text(
    tmp_path: Path, damage: bytes | None, is_loaded_between: bool
) -> None:
    file = JsonFile(tmp_path / "state.json", is_mirrored=True)
    backup = file.path.with_name("state.json.bak")
    file.write(b'{"a":1}', 1)
    assert backup.read_bytes() == b'{"a":1}'
    file.write(b'{"a":2}', 2)
    if is_loaded_between:
        backup.write_bytes(b'{"a":1}')  # a crash came between the two
        assert JsonFile(file.path, is_mirrored=True).load() == {"a": 2}
    if damage is None:
        file.path.unlink()
    else:
        file.path.write_bytes(damage)
    assert JsonFile(file.path, is_mirrored=True).load() == {"a": 2}


def test_a_mirrored_file_whose_copy_fails_is_written_all_the_same(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "state.json", is_mirrored=True)
    file.path.with_name("state.json.bak.tmp").mkdir()
    file.write(b'{"a":1}', 1)
    assert file.load() == {"a": 1}


@pytest.mark.parametrize("damage", [b"", b" \n", b'{"a":', b'{"a"' + bytes(99), b"\xff\xfe", b"[1]", None])
def test_the_backup_stands_in_for_a_damaged_or_absent_file(file: JsonFile, damage: bytes | None) -> None:
    file.write(b'{"a":1}', 1)
    file.write(b'{"a":2}', 2)
    if damage is None:
        file.path.unlink()
    else:
        file.path.write_bytes(damage)
    assert JsonFile(file.path).load() == {"a": 1}


def test_a_damaged_file_is_not_copied_over_its_good_backup(file: JsonFile) -> None:
    file.write(b'{"a":1}', 1)
    file.write(b'{"a":2}', 2)
    file.path.write_bytes(b"{torn")
    reopened = JsonFile(file.path)
    reopened.load()
    reopened.write(b'{"a":3}', 1)
    assert file.path.with_name("state.json.bak").read_bytes() == b'{"a":1}'


def test_damage_without_a_backup_is_an_error_that_names_the_file(file: JsonFile) -> None:
    file.write(b'{"a":1}', 1)
    file.path.write_bytes(b"{torn")
    with pytest.raises(StateFileError, match=r"state\.json.*no state\.json\.bak"):
        JsonFile(file.path).load()


def test_damage_of_both_is_an_error(file: JsonFile) -> None:
    file.write(b'{"a":1}', 1)
    file.write(b'{"a":2}', 2)
    for path in file.path.parent.iterdir():
        path.write_bytes(b"{torn")
    with pytest.raises(StateFileError, match="bak"):
        JsonFile(file.path).load()


def test_an_older_text_never_replaces_a_newer_one(file: JsonFile) -> None:
    file.write(b'{"a":2}', 2)
    file.write(b'{"a":1}', 1)
    assert file.load() == {"a": 2}


def test_bare_integer_keys_of_a_real_broker_are_read() -> None:
    document = JsonFile(GOLDEN / "consumerOffset.json").load()
    assert document is not None
    assert document["offsetTable"]["TopicTest@CG1"] == {"0": 2, "1": 1, "2": 2, "3": 3}


def test_the_text_is_strict_json_with_an_entry_a_line() -> None:
    text = document_text(
        {"t": [member_text("a", "1"), member_text('q"', "{}")], "empty": []}, data_version=b'{"counter":1}'
    )
    assert json.loads(text) == {"dataVersion": {"counter": 1}, "t": {"a": 1, 'q"': {}}, "empty": {}}
    assert b'\n\t\t"a":1,\n' in text


def test_a_document_is_made_in_bounded_parts_of_what_was_true_when_it_was_begun() -> None:
    entries = {f"k{number}": member_text(f"k{number}", str(number)) for number in range(3 * ENTRIES_A_PART + 1)}
    for is_compact in (False, True):
        document = Document({"t": entries.values(), "u": []}, is_compact=is_compact)
        parts = []
        for part in document:
            parts.append(part)
            entries[f"later{len(entries)}"] = member_text(f"later{len(entries)}", "0")
        text = b"".join(parts)
        assert max(part.count(b":") for part in parts) <= ENTRIES_A_PART + 1
        assert json.loads(text)["t"] == {f"k{number}": number for number in range(3 * ENTRIES_A_PART + 1)}
        assert text.count(b"\n") == (0 if is_compact else 3 * ENTRIES_A_PART + 5)
        entries = dict(list(entries.items())[: 3 * ENTRIES_A_PART + 1])


async def test_many_changes_make_one_write(file: JsonFile) -> None:
    state = {"n": 0}
    renderings: list[int] = []

    def render() -> bytes:
        renderings.append(state["n"])
        return json.dumps(state).encode()

    writer = StateWriter(file, render, delay_s=0.01)
    async with aside(writer.run()):
        for n in range(1, 101):
            state["n"] = n
            writer.changed()
        await asyncio.wait_for(writer.saved(), 30)
        assert file.load() == {"n": 100}
        assert renderings == [100]


async def test_a_long_write_is_followed_by_a_longer_pause(file: JsonFile, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[float] = []

    def slow(text: object, version: int) -> None:
        began.append(time.monotonic())
        time.sleep(0.1)  # a slow disk

    monkeypatch.setattr(file, "write", slow)
    writer = StateWriter(file, lambda: b"{}", delay_s=0, share_max=0.25)
    async with aside(writer.run()):
        async with asyncio.timeout(30):
            while len(began) < 3:
                writer.changed()
                await asyncio.sleep(0.001)
    assert all(later - earlier >= 0.4 for earlier, later in itertools.pairwise(began[:3]))


async def test_what_is_left_is_written_when_the_writer_ends(file: JsonFile) -> None:
    state = {"n": 0}
    writer = StateWriter(file, lambda: json.dumps(state).encode(), delay_s=60)
    async with aside(writer.run()):
        state["n"] = 7
        writer.changed()
    assert file.load() == {"n": 7}


async def test_a_change_during_a_write_is_written_after_it(file: JsonFile) -> None:
    state = {"n": 0}
    writer = StateWriter(file, lambda: json.dumps(state).encode(), delay_s=0)
    async with aside(writer.run()):
        for n in range(1, 20):
            state["n"] = n
            writer.changed()
            await asyncio.sleep(0.001)
        await asyncio.wait_for(writer.saved(), 30)
        assert file.load() == {"n": 19}


def test_persist_writes_only_what_changed(file: JsonFile) -> None:
    writer = StateWriter(file, lambda: b"{}", delay_s=0)
    writer.persist()
    assert not file.path.exists()
    writer.changed()
    writer.persist()
    assert file.load() == {}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where the folder should be")
    with pytest.raises(StateFileError, match="can't be written"):
        JsonFile(tmp_path / "config" / "state.json").write(b"{}", 1)


async def test_who_waits_for_the_disk_is_told_when_it_refuses_and_the_write_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_file, "RETRY_DELAY_S", 0.01)
    obstacle = tmp_path / "config"
    obstacle.write_text("a file where the folder should be")
    file = JsonFile(obstacle / "state.json")
    writer = StateWriter(file, lambda: b"{}", delay_s=0)
    task = asyncio.create_task(writer.run())
    writer.changed()
    with pytest.raises(StateFileError):
        await asyncio.wait_for(writer.saved(), 30)
    obstacle.unlink()
    async with asyncio.timeout(30):
        while not writer.is_saved:
            await asyncio.sleep(0.01)
    assert file.load() == {}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("damage", [b"", b"{torn", b'{"a":"no number"}'])
def test_a_file_that_cannot_be_used_is_kept_aside_when_it_is_replaced(
    file: JsonFile, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file.write(b'{"a":1}', 1)
    file.write(b'{"a":2}', 2)
    file.path.write_bytes(damage)
    reopened = JsonFile(file.path)
    assert reopened.load_as(lambda document: int(document["a"]), "a number") == 1
    (warning,) = [record for record in caplog.records if getattr(record, "event", "") == "state_file_damaged"]
    assert warning.__dict__["path"] == str(file.path)
    assert warning.__dict__["backup"] == f"{file.path}.bak"
    reopened.write(b'{"a":3}', 3)
    assert {path.name: path.read_bytes() for path in file.path.parent.iterdir()} == {
        "state.json": b'{"a":3}',
        "state.json.bak": b'{"a":1}',
        "state.json.damaged": damage,
    }


def test_an_empty_file_without_backup_is_told(file: JsonFile, caplog: pytest.LogCaptureFixture) -> None:
    file.write(b"", 1)
    assert JsonFile(file.path).load() is None
    assert [getattr(record, "event", "") for record in caplog.records] == ["state_file_empty"]


def test_a_wrong_shape_of_both_is_an_error_that_names_both(file: JsonFile) -> None:
    file.write(b'{"a":[]}', 1)
    file.write(b'{"b":2}', 2)
    with pytest.raises(StateFileError, match=r"state\.json: is not a number.*state\.json\.bak is not a number"):
        JsonFile(file.path).load_as(lambda document: int(document["a"]), "a number")
