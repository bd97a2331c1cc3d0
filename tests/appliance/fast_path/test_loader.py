"""Whether the compiled module is used: the environment, the broker's setting, what is there."""

from __future__ import annotations

from types import ModuleType

import pytest

from appliance.errors import StartError
from appliance.fast_path import loader
from gantrymq.errors import ConfigError


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_found", lambda sanitize: (None, "not compiled"))


@pytest.mark.parametrize("value", ["", "auto", "on", " ON "])
def test_it_is_used_when_it_is_there(compiled: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(loader.VARIABLE, value)
    assert loader.load() is compiled
    assert loader.status().is_on
    assert str(loader.status()) == "on"


def test_the_environment_turns_it_off(compiled: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loader.VARIABLE, "off")
    assert loader.load() is None
    assert str(loader.status()) == "off (GANTRY_FAST_PATH=off)"


@pytest.mark.parametrize("value", ["", "on"])
def test_the_brokers_setting_turns_it_off(compiled: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(loader.VARIABLE, value)
    assert loader.load(enabled=False) is None
    assert str(loader.status(enabled=False)) == "off (fastPathEnable=false)"


def test_without_it_the_broker_runs_and_says_why(absent: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loader.load() is None
    assert str(loader.status()) == "off (not compiled)"
    monkeypatch.setenv(loader.VARIABLE, "on")
    assert str(loader.status()) == "off (not compiled)"
    with pytest.raises(StartError, match="GANTRY_FAST_PATH=on, but the compiled fast path is not there: not compiled"):
        loader.load()


def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loader.VARIABLE, "fast")
    with pytest.raises(ConfigError, match="GANTRY_FAST_PATH=fast: use auto, on or off"):
        loader.load()
    assert not loader.status().is_on
