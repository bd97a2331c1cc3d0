"""RocketMQ's own command line reads and changes settings; the changes are kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench.gantry_peer import GantryPeer
from appliance.own_files import ROOT
from tests.interop.mqadmin.session import MqAdminSession


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GantryPeer]:
    """Our processes with properties files of their own."""
    with GantryPeer(tmp_path_factory.mktemp("config")) as running:
        yield running


def told_by(session: MqAdminSession, *arguments: object) -> str:
    return session.run(*arguments).text


def value_of(key: str, told: str) -> str:
    """The value that getBrokerConfig or getNamesrvConfig printed, `key = value` a line."""
    (line,) = (line for line in told.splitlines() if line.split("=")[0].strip() == key)
    return line.partition("=")[2].strip()


def settings_at_the_next_start(role: str, properties: Path) -> list[str]:
    command = [sys.executable, "-P", "-m", "appliance", role, "-c", str(properties), "--print-config"]
    environment = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()


def test_a_brokers_settings_are_read(peer: GantryPeer, mqadmin_session: MqAdminSession) -> None:
    told = told_by(mqadmin_session, "getBrokerConfig", "-b", peer.broker_address)
    assert value_of("brokerName", told) == peer.broker_name
    assert value_of("flushDiskType", told) == "ASYNC_FLUSH"


def test_a_changed_setting_of_a_broker_is_in_force_and_stays(peer: GantryPeer, mqadmin_session: MqAdminSession) -> None:
    properties = peer.home / "broker.properties"
    properties.write_text("# ours\n" + properties.read_text())
    before = properties.read_text()
    told = told_by(mqadmin_session, "updateBrokerConfig", "-b", peer.broker_address, "-k", "fileReservedTime", "-v", 49)
    assert "update broker config success" in told
    assert value_of("fileReservedTime", told_by(mqadmin_session, "getBrokerConfig", "-b", peer.broker_address)) == "49"
    assert properties.read_text() == before + "fileReservedTime=49\n"
    assert "fileReservedTime=49" in settings_at_the_next_start("broker", properties)


def test_a_refused_setting_of_a_broker_says_why(peer: GantryPeer, mqadmin_session: MqAdminSession) -> None:
    before = (peer.home / "broker.properties").read_text()
    for key, value, why in (
        ("rocketmqHome", "/tmp/x;id", "can not be changed by a request"),
        ("brokerName", "other", "edit the file and restart"),
        ("fileReservedTime", "0", "use a number from 1"),
    ):
        told = told_by(mqadmin_session, "updateBrokerConfig", "-b", peer.broker_address, "-k", key, "-v", value)
        assert key in told
        assert why in told
    assert (peer.home / "broker.properties").read_text() == before


def test_a_name_servers_settings_are_read_and_changed(peer: GantryPeer, mqadmin_session: MqAdminSession) -> None:
    properties = peer.home / "namesrv.properties"
    told = told_by(
        mqadmin_session, "updateNamesrvConfig", "-n", peer.namesrv_address, "-k", "orderMessageEnable", "-v", "true"
    )
    assert "update name server config success" in told
    told = told_by(mqadmin_session, "getNamesrvConfig", "-n", peer.namesrv_address)
    assert value_of("orderMessageEnable", told) == "true"
    assert "orderMessageEnable=true" in settings_at_the_next_start("namesrv", properties)
    refused = told_by(
        mqadmin_session, "updateNamesrvConfig", "-n", peer.namesrv_address, "-k", "kvConfigPath", "-v", "/tmp/x"
    )
    assert "can not be changed by a request" in refused


def test_settings_are_exported(peer: GantryPeer, mqadmin_session: MqAdminSession, tmp_path: Path) -> None:
    told = told_by(mqadmin_session, "exportConfigs", "-n", peer.namesrv_address, "-c", "BenchCluster", "-f", tmp_path)
    assert "success" in told
    text = (tmp_path / "configs.json").read_text()
    assert "ASYNC_MASTER" in text
    assert peer.broker_name in text
