"""KVConfigManager: the table and its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.namesrv.kv_config import ORDER_TOPIC_NAMESPACE, KVConfigManager
from gantrymq.errors import ConfigError

REAL = b'{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}}}'  # as RocketMQ 4.9.4 writes it


def written(path: Path, *values: str) -> KVConfigManager:
    manager = KVConfigManager(path)
    for value in values:
        manager.put("N", "k", value)
        manager.write(manager.to_json())
    return manager


def test_rocketmqs_own_file_is_read_and_written_alike(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_bytes(REAL)
    manager = KVConfigManager(path)
    manager.load()
    assert manager.get(ORDER_TOPIC_NAMESPACE, "T") == "broker-a:4"
    assert manager.to_json() == REAL


def test_no_file_is_an_empty_table(tmp_path: Path) -> None:
    manager = KVConfigManager(tmp_path / "absent" / "kvConfig.json")
    manager.load()
    assert manager.namespace("N") is None
    manager.put("N", "k", "v")
    manager.write(manager.to_json())
    assert (tmp_path / "absent" / "kvConfig.json").exists()


def test_an_emptied_namespace_is_not_one_that_never_was(tmp_path: Path) -> None:
    manager = KVConfigManager(tmp_path / "kvConfig.json")
    manager.put("N", "k", "v")
    manager.delete("N", "k")
    manager.delete("other", "k")
    assert manager.namespace("N") == {}
    assert manager.namespace("other") is None


@pytest.mark.parametrize("damage", [b"", b'{"configTable":{"N"', b"[]", b'{"configTable":{"N":1}}', b"\xff\xfe", None])
def test_a_damaged_or_lost_file_comes_back_from_its_backup(tmp_path: Path, damage: bytes | None) -> None:
    path = tmp_path / "kvConfig.json"
    written(path, "first", "second")
    path.unlink() if damage is None else path.write_bytes(damage)
    manager = KVConfigManager(path)
    manager.load()
    assert manager.get("N", "k") == "first"


def test_damage_without_a_backup_is_reported_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_bytes(b"{")
    with pytest.raises(ConfigError, match=r"kvConfig\.json"):
        KVConfigManager(path).load()
