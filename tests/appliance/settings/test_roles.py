"""appliance/settings/roles.py: RocketMQ's properties files in, frozen settings out."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.settings.loader import load_broker_config, load_namesrv_config, read_properties, write_properties
from gantrymq.errors import ConfigError


def test_rocketmqs_own_broker_conf_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        "# Licensed ...\nbrokerClusterName = DefaultCluster\nbrokerName = broker-a\nbrokerId = 0\ndeleteWhen = 04\n"
        "fileReservedTime = 48\nbrokerRole = ASYNC_MASTER\nflushDiskType = SYNC_FLUSH\nsendMessageThreadPoolNums=8\n"
    )
    config, store_config, ignored = load_broker_config(path)
    assert (config.broker_name, config.cluster_name) == ("broker-a", "DefaultCluster")
    assert store_config.file_reserved_hours == 48
    assert store_config.is_sync_flush
    assert ignored == ["sendMessageThreadPoolNums"]


def test_a_typing_error_is_refused_and_the_nearest_key_offered(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("brokerNmae=broker-a\n")
    with pytest.raises(ConfigError, match="did you mean brokerName"):
        load_broker_config(path)


@pytest.mark.parametrize(
    "line",
    [
        "listenPort=many",
        "autoCreateTopicEnable=yes",
        "flushDiskType=NEVER",
        "brokerId=1",
        "mappedFileSizeCommitLog=7",
        "sendThreadPoolQueueCapacity=0",
        "waitTimeMillsInSendQueue=-1",
        "brokerPermission=5",
        "haSlaveAddresses=10.0.0.300",
        "rocketmq.broker.diskSpaceWarningLevelRatio=full",
        "rocketmq.broker.diskSpaceWarningLevelRatio=0.5",
        "tls.server.mode=enforcing",
        "tls.server.need.client.auth=require",
        "tls.test.mode.enable=true",
    ],
)
def test_a_value_that_can_not_be_is_refused_with_its_key(tmp_path: Path, line: str) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(line + "\n")
    with pytest.raises(ConfigError, match=line.split("=")[0]):
        load_broker_config(path)


def test_a_line_without_a_key_is_named_by_its_number() -> None:
    with pytest.raises(ConfigError, match="line 2"):
        read_properties("a=1\nnonsense\n")


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    config, store_config, _ = load_broker_config(None, {"listenPort": "20911", "traceOn": "false"})
    path = tmp_path / "written.conf"
    path.write_text(write_properties(config, store_config))
    assert load_broker_config(path)[:2] == (config, store_config)


def test_defaults_bind_to_loopback_only() -> None:
    assert load_broker_config(None)[0].bind_address == "127.0.0.1"
    assert load_namesrv_config(None)[0].bind_address == "127.0.0.1"


def test_rocketmqs_tls_file_has_the_last_word_but_not_about_the_mode(tmp_path: Path) -> None:
    tls = tmp_path / "tls.properties"
    tls.write_text("tls.server.certPath=/theirs.pem\ntls.server.mode=enforcing\ntls.enable=true\n")
    path = tmp_path / "broker.conf"
    path.write_text(f"tls.config.file={tls}\ntls.server.certPath=/mine.pem\n")
    config, _, _ = load_broker_config(path)
    assert (config.tls_cert, config.effective_tls_mode, config.tls_outgoing) == ("/theirs.pem", "permissive", None)
    tls.write_text("brokerName=x\n")
    with pytest.raises(ConfigError, match="brokerName is not a TLS setting"):
        load_broker_config(path)


def test_the_name_server_is_spoken_to_over_tls_when_told_so_or_enforcing() -> None:
    assert load_broker_config(None, {"tls.server.certPath": "/c.pem"})[0].outgoing_tls is None
    for more in ({"tls.server.mode": "enforcing"}, {"tls.enable": "true"}, {"useTLS": "true"}):
        assert load_broker_config(None, {"tls.server.certPath": "/c.pem", **more})[0].outgoing_tls is not None
    plain = {"tls.server.certPath": "/c.pem", "tls.server.mode": "enforcing", "useTLS": "false"}
    assert load_broker_config(None, plain)[0].outgoing_tls is None
