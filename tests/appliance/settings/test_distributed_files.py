"""The settings files that come with RocketMQ are taken as they are, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.settings.loader import load_broker_config, load_namesrv_config
from gantrymq.errors import ConfigError

COMMON = {"brokerClusterName": "DefaultCluster", "deleteWhen": "04", "fileReservedTime": "48"}
ASYNC = {"flushDiskType": "ASYNC_FLUSH"}
DLEDGER = {
    "brokerClusterName": "RaftCluster",
    "brokerName": "RaftNode00",
    "namesrvAddr": "127.0.0.1:9876",
    "enableDLegerCommitLog": "true",
    "dLegerGroup": "RaftNode00",
    "dLegerPeers": "n0-127.0.0.1:40911;n1-127.0.0.1:40912;n2-127.0.0.1:40913",
    "sendMessageThreadPoolNums": "16",
}


def master(name: str, role: str = "ASYNC_MASTER") -> dict[str, str]:
    return COMMON | ASYNC | {"brokerName": name, "brokerId": "0", "brokerRole": role}


def slave(name: str) -> dict[str, str]:
    return COMMON | ASYNC | {"brokerName": name, "brokerId": "1", "brokerRole": "SLAVE"}


def dledger(number: int) -> dict[str, str]:
    root = f"/tmp/rmqstore/node0{number}"
    return DLEDGER | {
        "listenPort": f"309{number + 1}1",
        "storePathRootDir": root,
        "storePathCommitLog": f"{root}/commitlog",
        "dLegerSelfId": f"n{number}",
    }


FILES = {  # all of `conf/` in 4.9.4 to 4.9.8
    "broker.conf": master("broker-a"),
    "2m-noslave/broker-a.properties": master("broker-a"),
    "2m-noslave/broker-b.properties": master("broker-b"),
    "2m-noslave/broker-trace.properties": master("broker-trace"),
    "2m-2s-async/broker-a.properties": master("broker-a"),
    "2m-2s-async/broker-a-s.properties": slave("broker-a"),
    "2m-2s-async/broker-b.properties": master("broker-b"),
    "2m-2s-async/broker-b-s.properties": slave("broker-b"),
    "2m-2s-sync/broker-a.properties": master("broker-a", "SYNC_MASTER"),
    "2m-2s-sync/broker-a-s.properties": slave("broker-a"),
    "2m-2s-sync/broker-b.properties": master("broker-b", "SYNC_MASTER"),
    "2m-2s-sync/broker-b-s.properties": slave("broker-b"),
    "dledger/broker-n0.conf": dledger(0),
    "dledger/broker-n1.conf": dledger(1),
    "dledger/broker-n2.conf": dledger(2),
}


def written(folder: Path, settings: dict[str, str]) -> Path:
    path = folder / "broker.conf"
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return path


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_file_is_taken_as_it_is_or_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    settings = FILES[name]
    path = written(tmp_path, settings)
    if "enableDLegerCommitLog" in settings:
        with pytest.raises(ConfigError, match="DLedger has another store format"):
            load_broker_config(path)
        return
    config, store_config, ignored = load_broker_config(path)
    assert (config.broker_name, config.broker_role) == (settings["brokerName"], settings["brokerRole"])
    assert (store_config.file_reserved_hours, ignored) == (48, [])


def test_a_sync_master_that_names_no_slaves_lets_those_of_its_machine_in_until_addresses_are_given() -> None:
    sync = {"brokerRole": "SYNC_MASTER"}
    config = load_broker_config(None, sync)[0]
    assert config.has_slave_port
    assert [config.why_no_slave(host, "10.1.0.1") for host in ("127.0.0.1", "::1", "10.1.0.1")] == [""] * 3
    assert "slavesEnable=true" in config.why_no_slave("10.1.0.7", "10.1.0.1")
    config = load_broker_config(None, sync | {"haSlaveAddresses": "10.1.0.7"})[0]
    assert config.why_no_slave("10.1.0.7", "10.1.0.1") == ""
    assert "haSlaveAddresses" in config.why_no_slave("127.0.0.1", "127.0.0.1")
    config = load_broker_config(None, sync | {"slavesEnable": "true"})[0]
    assert config.why_no_slave("10.1.0.7", "10.1.0.1") == ""
    assert not load_broker_config(None)[0].has_slave_port


def test_older_names_of_settings_mean_what_the_newer_ones_do(tmp_path: Path) -> None:
    older = {
        "mapedFileSizeCommitLog": "1048576",
        "mapedFileSizeConsumeQueue": "300000",
        "mapedFileSizeConsumeQueueExt": "52428800",
    }
    _, store_config, ignored = load_broker_config(written(tmp_path, older))
    assert (store_config.commit_log_file_bytes, store_config.consume_queue_file_bytes) == (1 << 20, 300_000)
    assert (store_config.consume_queue_ext_file_bytes, ignored) == (50 << 20, [])
    both = older | {"mappedFileSizeCommitLog": "2097152"}
    assert load_broker_config(written(tmp_path, both))[1].commit_log_file_bytes == 2 << 20


def test_keys_that_are_passed_on_from_file_to_file_have_no_effect(tmp_path: Path) -> None:
    keys = [
        "abortFile",
        "checkTransactionMessageEnable",
        "enableScheduleMessageSync",
        "storeCheckpoint",
        "storePathConsumeQueue",
        "storePathIndex",
    ]
    assert load_broker_config(written(tmp_path, dict.fromkeys(keys, "false")))[2] == keys


def test_a_controller_is_refused_and_its_absence_is_not(tmp_path: Path) -> None:
    load_broker_config(written(tmp_path, {"enableControllerMode": "false"}))
    with pytest.raises(ConfigError, match=r"enableControllerMode=true: there is no controller: .*gantry admin promote"):
        load_broker_config(written(tmp_path, {"enableControllerMode": "true"}))


def test_all_that_is_wrong_with_the_keys_is_told_at_once(tmp_path: Path) -> None:
    wrong = {
        "brokerNmae": "a",
        "storePathMessages": "/x",
        "enableLmq": "true",
        "clusterTest": "true",
        "orderMessageEnable": "true",
        "listenPort": "10911",
    }
    with pytest.raises(ConfigError) as refusal:
        load_broker_config(written(tmp_path, wrong))
    told = str(refusal.value)
    assert "brokerNmae (did you mean brokerName?)" in told
    assert "storePathMessages" in told and "storePathMessages (" not in told, "a key that is only alike is no hint"
    assert "orderMessageEnable (a name server's)" in told
    assert "enableLmq=true: light" in told and "clusterTest=true: there is no" in told
    with pytest.raises(ConfigError, match=r"unknown setting traceOn \(a broker's\)"):
        load_namesrv_config(written(tmp_path, {"traceOn": "true"}))
