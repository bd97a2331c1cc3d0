"""A repair puts right what verify finds, keeps what it takes out, and leaves the folder alone until told to."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq.message import record
from store import MessageStoreConfig, StoreLocked
from store.base.cut_folder import CutFolder
from store.inspect.findings import Level
from store.inspect.folder import StoreFolder
from store.inspect.queue_reader import Unit
from store.inspect.repair import RepairOptions, RepairPlan, RepairRefused, plan_repair, repair_store
from store.inspect.verify import VerifyResult, verify_store
from tests.store.conftest import OpenStore, message, read_all
from tests.store.golden import commit_log_records, queue_units, unpack
from tests.store.inspect.conftest import MESSAGES, log_file, overwrite, queue_file, snapshot

Damage = Callable[[MessageStoreConfig], None]


def plan(config: MessageStoreConfig, options: RepairOptions | None = None) -> RepairPlan:
    with StoreFolder(config.root) as folder:
        return plan_repair(folder, verify_store(folder), options)


def repair(
    config: MessageStoreConfig, options: RepairOptions | None = None
) -> tuple[RepairPlan, CutFolder, VerifyResult]:
    return repair_store(
        config.root, lambda is_ours: StoreFolder(config.root, is_ours=is_ours), options or RepairOptions()
    )


def tear_last_record(config: MessageStoreConfig) -> None:
    *_, (offset, raw) = commit_log_records(config.root)
    base = offset - offset % 65536
    overwrite(log_file(config, base), offset - base + 40, b"\7" * (len(raw) - 50))


def zero_units(config: MessageStoreConfig) -> None:
    overwrite(queue_file(config), 5 * 20, bytes(40))


def shift_tag(config: MessageStoreConfig) -> None:
    overwrite(queue_file(config), 5 * 20 + 19, b"\0")


def lose_queue_file(config: MessageStoreConfig) -> None:
    queue_file(config, index=200).unlink()


def lose_queue(config: MessageStoreConfig) -> None:
    for path in queue_file(config, "SCHEDULE_TOPIC_XXXX", 1).parent.iterdir():
        overwrite(path, 0, bytes(20))


def plant_stale_units(config: MessageStoreConfig) -> None:
    overwrite(queue_file(config, index=800), 30 * 20, struct.pack(">qiq", 17, 100, 0))


def break_index(config: MessageStoreConfig) -> None:
    overwrite(sorted((config.root / "index").iterdir())[0], 40, bytes(400))


DAMAGES: list[Damage] = [
    tear_last_record, zero_units, shift_tag, lose_queue_file, lose_queue, plant_stale_units, break_index,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_repaired_store_is_sound_and_has_every_whole_message(
    stopped: MessageStoreConfig, open_store: OpenStore, damage: Damage
) -> None:
    messages = len(list(commit_log_records(stopped.root)))
    damage(stopped)
    before = snapshot(stopped.root)
    assert not plan(stopped).is_empty
    assert snapshot(stopped.root) == before  # a plan is only a plan
    _plan, kept, result = repair(stopped)
    assert [str(finding) for finding in result.findings if finding.level > Level.NOTE] == []
    assert result.records == messages - (damage is tear_last_record)
    assert plan(stopped).is_empty
    assert (kept.path / "cut.json").exists()
    store = open_store(stopped)
    bodies = [record.decode_record(raw).body[:6] for raw in read_all(store, "T")]
    assert bodies == [b"%06d" % number for number in range(MESSAGES)]
    assert store.put_message(message(b"next")).queue_offset == MESSAGES
    for key in ("k0", "k7", f"k{MESSAGES - 1}"):
        assert len(store.query_message("T", key, 32, 0, 1 << 62).buffers) == 1
    (unit,) = store.consume_queue_units("SCHEDULE_TOPIC_XXXX", 1, 0, 9)
    (delayed,) = read_all(store, "SCHEDULE_TOPIC_XXXX", 1)
    assert unit.tags_code == record.decode_record(delayed).store_timestamp + 5000


def test_what_is_cut_lies_beside_the_store_with_a_note(stopped: MessageStoreConfig) -> None:
    *_, (offset, _raw) = commit_log_records(stopped.root)
    base = offset - offset % 65536
    tear_last_record(stopped)
    torn = log_file(stopped, base).read_bytes()
    _plan, kept, _result = repair(stopped)
    assert kept.path.parent == stopped.root.parent
    (cut,) = json.loads((kept.path / "cut.json").read_text())["cuts"]
    assert (cut["offset"], cut["position"], cut["bytes"]) == (offset, offset - base, 65536 - (offset - base))
    assert (kept.path / cut["kept"]).read_bytes() == torn[offset - base :]
    assert not any(log_file(stopped, base).read_bytes()[offset - base :])


def test_replaced_queues_and_indexes_are_kept_whole(stopped: MessageStoreConfig) -> None:
    files = {path.name: path.read_bytes() for path in (stopped.root / "index").iterdir()}
    units = queue_units(stopped.root, "T", 0)
    _plan, kept, result = repair(stopped, RepairOptions(all_queues=True, index=True))
    assert {path.name: path.read_bytes() for path in (kept.path / "index").iterdir()} == files
    assert queue_units(kept.path, "T", 0) == units == queue_units(stopped.root, "T", 0)
    assert result.findings.worst is Level.NOTE


def test_damage_with_whole_records_behind_is_not_cut_unasked(stopped: MessageStoreConfig) -> None:
    overwrite(log_file(stopped), 90, b"\xff")
    before = snapshot(stopped.root)
    assert "--cut-at-damage" in plan(stopped).refusal
    with pytest.raises(RepairRefused):
        repair(stopped)
    after = snapshot(stopped.root)
    assert after | {"lock": before["lock"]} == before  # taking the lock writes to it
    assert not list(stopped.root.parent.glob("*.cut-*"))


def test_cutting_at_damage_keeps_the_files_behind(stopped: MessageStoreConfig, open_store: OpenStore) -> None:
    records = list(commit_log_records(stopped.root))
    damaged_offset = records[300][0]
    overwrite(log_file(stopped), damaged_offset + 90, b"\xff")
    _plan, kept, result = repair(stopped, RepairOptions(cut_at_damage=True))
    assert (result.findings.worst, result.records, result.log_end) == (Level.NOTE, 300, damaged_offset)
    assert {path.name for path in (kept.path / "commitlog").iterdir()} == {
        f"{0:020d}.from-{damaged_offset}", f"{65536:020d}", f"{131072:020d}",
    }  # fmt: skip
    store = open_store(stopped)
    assert len(read_all(store, "T")) == 300
    assert store.put_message(message(b"next")).queue_offset == 300


@pytest.mark.parametrize("name", ["clean_broker", "rolled_preblank", "cq_ext"])
def test_queues_and_index_of_apaches_stores_come_out_the_same(name: str, tmp_path: Path) -> None:
    config = unpack(name, tmp_path)
    units, entries = _contents(config.root)
    _plan, kept, result = repair(config, RepairOptions(all_queues=True, index=True))
    assert [str(finding) for finding in result.findings if finding.level > Level.NOTE] == []
    new_units, new_entries = _contents(config.root)
    assert new_units.keys() == units.keys()
    for key, expected in units.items():
        if name == "cq_ext":  # extension addresses become plain tags codes
            expected = [unit._replace(tags_code=84) for unit in expected]
        assert new_units[key] == expected
    assert new_entries == entries
    assert kept.cuts


def test_a_live_store_is_refused(small: MessageStoreConfig, open_store: OpenStore) -> None:
    open_store(small).put_message(message())
    with pytest.raises(StoreLocked):
        plan(small)
    with pytest.raises(StoreLocked):
        repair(small)


def _contents(root: Path) -> tuple[dict[tuple[str, int], list[Unit]], set[tuple[int, int]]]:
    """Units by queue without fillers; hash and offset of index entries whose message is still there."""
    with StoreFolder(root) as folder:
        units = {key: [unit for unit in queue.units() if not unit.is_filler] for key, queue in folder.queues.items()}
        entries = {
            (entry.key_hash, entry.physical_offset)
            for index in folder.indexes()
            for entry in index.entries()
            if entry.physical_offset >= folder.log.min_offset
        }
    return units, entries
