"""Settings of the appliance: who wins, what is refused, what the next process gets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from appliance import own_files
from appliance.settings.appliance_config import ApplianceConfig, describe
from appliance.settings.variables import RESERVED_VARIABLES
from gantrymq.errors import ConfigError


def load(arguments=None, environment=None, *, folder: Path, file: str | None = None) -> ApplianceConfig:
    if file is not None:
        (folder / "gantry.toml").write_text(file)
    return ApplianceConfig.load(arguments or {}, environment or {}, working_folder=folder)


def test_arguments_win_over_the_environment_over_the_file_over_the_defaults(tmp_path: Path) -> None:
    file = "http_port = 1\nnamesrv_port = 1\nbroker_port = 1\n"
    environment = {"GANTRY_HTTP_PORT": "2", "GANTRY_NAMESRV_PORT": "2"}
    config = load({"http_port": 3, "namesrv_port": None}, environment, folder=tmp_path, file=file)
    assert (config.http_port, config.namesrv_port, config.broker_port, config.brokers) == (3, 2, 1, 1)


@pytest.mark.parametrize("is_checkout", [True, False])
def test_the_help_names_the_folder_that_is_taken_without_data(
    is_checkout: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_files, "ROOT", tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if is_checkout:
        (tmp_path / "pyproject.toml").touch()
    taken = str(own_files.default_data()).replace(f"{tmp_path}/", "").replace("/home/me", "~")
    assert taken in describe("data")


def test_the_file_may_be_named(tmp_path: Path) -> None:
    named = tmp_path / "other.toml"
    named.write_text('http-port = 99\ndata = "messages"\n')
    by_variable = ApplianceConfig.load({}, {"GANTRY_CONFIG": str(named)}, working_folder=tmp_path)
    by_argument = ApplianceConfig.load({}, {}, config_file=named)
    assert by_variable == by_argument
    assert by_argument.http_port == 99
    assert by_argument.data == tmp_path / "messages"  # beside the file that says so, wherever the command was started


@pytest.mark.parametrize(
    ("environment", "file", "sentence"),
    [
        ({"GANTRY_HTP_PORT": "1"}, "", "unknown setting GANTRY_HTP_PORT; did you mean GANTRY_HTTP_PORT?"),
        ({}, "htp_port = 1", "unknown setting htp_port; did you mean http_port?"),
        ({"GANTRY_HTTP_PORT": "many"}, "", "GANTRY_HTTP_PORT='many': use a whole number"),
        ({}, "http_port = true", "http_port=True: use a whole number"),
        ({}, 'allow_open_network = "perhaps"', "allow_open_network='perhaps': use true or false"),
        ({}, "http_port = 70000", "http_port=70000: use a number from 0 to 65535"),
        ({}, "brokers = 27", "brokers=27: use a number from 1 to 26"),
        ({}, "broker_port = 65000\nbrokers = 10", "no room for 10 brokers 100 ports apart"),
        ({}, "= 3", "gantry.toml: "),
        ({"GANTRY_CONFIG": "/does/not/exist.toml"}, "", "give an existing file to --config"),
    ],
)
def test_a_mistake_is_refused_with_its_fix(
    tmp_path: Path, environment: dict[str, str], file: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load({}, environment, folder=tmp_path, file=file)
    assert sentence in str(caught.value)


def test_what_is_exported_builds_the_same_settings(tmp_path: Path) -> None:
    config = load({"data": tmp_path, "brokers": 3, "allow_open_network": True, "http_port": 1}, folder=tmp_path)
    assert ApplianceConfig.from_environment(config.to_environment()) == config


def test_variables_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    environment = {"GANTRY_TEST_X": "1", "GANTRY_BENCH_Y": "2", **dict.fromkeys(RESERVED_VARIABLES[1:], "3")}
    assert load({}, environment, folder=tmp_path) == load({}, {}, folder=tmp_path)


def test_brokers_have_letters_and_lie_a_hundred_ports_apart(tmp_path: Path) -> None:
    config = load({"brokers": 2, "broker_port": 20000, "bind": "::1"}, folder=tmp_path)
    assert [broker.name for broker in config.broker_processes] == ["broker-a", "broker-b"]
    addresses = [config.broker_address_of(broker) for broker in config.broker_processes]
    assert addresses == ["[::1]:20000", "[::1]:20100"]


def test_slaves_stand_beside_their_broker(tmp_path: Path) -> None:
    config = load({"brokers": 2, "slaves": 1, "broker_port": 20000}, folder=tmp_path)
    assert [(each.name, each.broker_name, each.first_id, each.port) for each in config.broker_processes] == [
        ("broker-a", "broker-a", 0, 20000),
        ("broker-a-2", "broker-a", 1, 20010),
        ("broker-b", "broker-b", 0, 20100),
        ("broker-b-2", "broker-b", 1, 20110),
    ]
    ports = [port for each in config.broker_processes for port in (each.vip_port, each.port, each.ha_port)]
    assert len(set(ports)) == 12


def test_replicas_are_three_and_no_slaves_beside(tmp_path: Path) -> None:
    config = load({"brokers": 2, "replicas": 3}, folder=tmp_path)
    names = [broker.name for broker in config.broker_processes]
    assert names == [name + more for name in ("broker-a", "broker-b") for more in ("", "-2", "-3")]
    with pytest.raises(ConfigError, match="replicas=2: use 1 or 3"):
        load({"replicas": 2}, folder=tmp_path)
    with pytest.raises(ConfigError, match="leave out slaves"):
        load({"replicas": 3, "slaves": 1}, folder=tmp_path)


def test_a_wildcard_bind_advertises_an_address_that_clients_can_connect_to(tmp_path: Path) -> None:
    config = load({"bind": "0.0.0.0"}, folder=tmp_path)
    assert not config.is_loopback
    assert config.advertise not in ("", "0.0.0.0")


@pytest.mark.parametrize(
    ("mode", "owner", "reason"),
    [(0o664, 0, None), (0o664, 4711, None), (0o666, 4711, "written by every account"), (0o600, 4712, "user id 4712")],
)
def test_a_file_that_nobody_named_must_be_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int, reason: str | None
) -> None:
    """In a folder like /tmp somebody else's gantry.toml would choose the Java that reports run."""
    path = tmp_path / "gantry.toml"
    path.write_text("http_port = 8123\n")
    path.chmod(mode)
    real = Path.stat
    monkeypatch.setattr(os, "geteuid", lambda: 4711)

    def owned(self: Path, **options: Any) -> os.stat_result:
        found = real(self, **options)
        return os.stat_result((*found[:4], owner, *found[5:])) if self == path else found

    monkeypatch.setattr(Path, "stat", owned)
    if reason is None:
        assert load(folder=tmp_path).http_port == 8123
    else:
        with pytest.raises(ConfigError, match=reason):
            load(folder=tmp_path)
    named = ApplianceConfig.load({}, {"GANTRY_CONFIG": str(path)}, working_folder=tmp_path)
    assert named.http_port == 8123, "who names a file means it"
