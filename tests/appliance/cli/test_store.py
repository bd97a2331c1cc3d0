"""`gantry store`: output for people and for programs, exit codes, and nothing touched by a look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from appliance.__main__ import main
from appliance.broker.epochs.standing import Standing
from tests.store.conftest import message, opened, small_config
from tests.store.golden import unpack
from tests.store.inspect.conftest import log_file, overwrite, snapshot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpack("clean_broker", tmp_path).root


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["store", *(str(argument) for argument in arguments)])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_verify_says_sound_and_check_what_it_did_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = run(capsys, "check", folder)
    assert code == 0
    assert "which reads ends and tables only" in out.splitlines()[-1] and "sound" not in out
    assert "18 units" in out
    code, out, _err = run(capsys, "verify", folder)
    assert (code, out.splitlines()[-1]) == (0, "sound")


@pytest.mark.parametrize("verb", ["check", "verify"])
@pytest.mark.parametrize(
    ("damaged", "missing", "code", "found"),
    [
        ((), (), 0, ""),
        (("topics.json",), (), 1, "topics.json  is damaged"),
        ((), ("topics.json",), 1, "topics.json  is missing: the next start reads topics.json.bak"),
        (("topics.json.bak",), (), 1, "topics.json.bak  is damaged"),
        (("topics.json", "topics.json.bak"), (), 2, "topics.json  is damaged"),
        ((), ("topics.json", "topics.json.bak"), 2, "begins without topics"),
        (("topics.json",), ("topics.json.bak",), 2, "and topics.json.bak is missing"),
        (("epochs.json",), (), 1, "epochs.json  is damaged"),
        (("epochs.json",), ("epochs.json.bak",), 2, "epochs.json  is damaged"),
    ],
)
def test_a_look_reads_the_tables_too(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    damaged: tuple[str, ...],
    missing: tuple[str, ...],
    code: int,
    found: str,
) -> None:
    config = folder / "config"
    for name, text in (("topics.json", b'{"topicConfigTable":{}}'), ("epochs.json", Standing().to_json())):
        (config / name).write_bytes(text)
        (config / f"{name}.bak").write_bytes(text)
    for name in damaged:
        (config / name).write_bytes(b'{"epochs":7,"topicConfigTable":[]}')
    for name in missing:
        (config / name).unlink()
    before = snapshot(folder)
    result, out, _err = run(capsys, verb, folder)
    assert (result, found in out) == (code, True)
    assert snapshot(folder) == before


def test_a_crashed_store_is_worth_a_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = run(capsys, "check", unpack("crash_abort", tmp_path).root, "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["code"] == "abort_marker"


def test_damage_is_exit_code_2_and_names_the_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "commitlog" / ("0" * 20)
    overwrite(path, 90, b"\xff")
    code, out, _err = run(capsys, "verify", folder)
    assert code == 2
    assert f"error    {path}:0  damage at offset 0" in out
    code, out, _err = run(capsys, "verify", folder, "--json")
    document = json.loads(out)
    assert (code, document["worst"]) == (2, "error")
    assert document["findings"][0]["position"] == 0


def test_a_folder_that_is_no_store_is_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _out, err = run(capsys, "check", tmp_path)
    assert code == 2
    assert "is not a store" in err


def test_records_come_as_json_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(folder)
    code, out, _err = run(capsys, "dump", folder, "--topic", "TopicTest", "--key", "k1", "--body", "--json")
    (row,) = [json.loads(line) for line in out.splitlines()]
    assert (code, row["body"], row["physicalOffset"]) == (0, "hello", 0)
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("records", "physicalOffset=224"),
        ("units", "tagsCode=2598920"),
        ("index", "keyHash=1143482846"),
        ("checkpoint", "state=stopped"),
        ("config", '"readQueueNums"'),
    ],
)
def test_each_content_is_readable(folder: Path, capsys: pytest.CaptureFixture[str], what: str, expected: str) -> None:
    code, out, _err = run(capsys, "dump", folder, what)
    assert code == 0
    assert expected in out


def test_a_limit_ends_the_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _code, out, _err = run(capsys, "dump", folder, "units", "--limit", "3")
    assert len(out.splitlines()) == 3


def test_config_tables_are_read_as_a_broker_reads_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _code, out, _err = run(capsys, "dump", folder, "config", "--json")
    tables = {table["file"]: table["content"] for table in map(json.loads, out.splitlines())}
    assert tables["consumerOffset.json"]["offsetTable"]["TopicTest@CG1"]["0"] == 2


def test_a_repair_is_only_planned_without_yes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = unpack("ipv6_delay", tmp_path)
    overwrite(log_file(config), 600, b"rest of a torn record")
    before = snapshot(tmp_path)
    code, out, _err = run(capsys, "repair", config.root)
    assert code == 1
    assert "nothing was changed" in out
    assert snapshot(tmp_path) == before
    code, out, _err = run(capsys, "repair", config.root, "--yes")
    assert code == 0
    assert out.splitlines()[-1] == "sound"
    assert len(list(tmp_path.glob("*.cut-*/commitlog/*.from-507"))) == 1


def test_the_index_needs_a_topic_for_a_key(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _out, err = run(capsys, "dump", folder, "index", "--key", "k1")
    assert code == 2
    assert "--topic" in err


@pytest.mark.parametrize("how", ["several options", "one with commas", "broker's properties"])
def test_a_commit_log_in_several_folders_is_read_and_repaired_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    logs = [tmp_path / "disk1", tmp_path / "disk2", tmp_path / "old"]
    store = opened(small_config(tmp_path / "store", commit_log=Path(",".join(map(str, logs)))))
    for number in range(30):
        store.put_message(message(b"%d" % number + bytes(30_000)))
    store.close()
    properties = tmp_path / "broker.conf"
    properties.write_text(
        f"storePathCommitLog={logs[0]},{logs[1]}\nreadOnlyCommitLogStorePaths={logs[2]}\nmaxHashSlotNum=100\n"
    )
    options: list[object] = {
        "several options": [word for path in logs for word in ("--commit-log", path)],
        "one with commas": ["--commit-log", ",".join(map(str, logs))],
        "broker's properties": ["--config", properties],
    }[how]
    folder = tmp_path / "store"
    code, out, _err = run(capsys, "verify", folder, *options)
    assert (code, "30 records" in out) == (0, True)
    code, out, _err = run(capsys, "dump", folder, "records", "--json", *options)
    assert len(out.splitlines()) == 30
    assert run(capsys, "check", folder, *options)[0] == 0
    written = [path for each in logs for path in each.iterdir() if any(path.read_bytes())]
    path = max(written, key=lambda each: each.name)
    overwrite(path, 4, b"torn")
    code, out, _err = run(capsys, "repair", folder, "--yes", "--cut-at-damage", "--json", *options)
    assert code == 0, out
    assert json.loads(out)["cuts"][0]["source"] == str(path)
    code, out, _err = run(capsys, "dump", folder, "records", "--json", *options)
    assert 27 <= len(out.splitlines()) < 30


def test_a_missing_folder_of_the_commit_log_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _out, err = run(capsys, "check", folder, "--commit-log", f"{folder}/commitlog,{folder}/gone")
    assert f"{folder}/gone is not a folder" in err
    assert code == 0
