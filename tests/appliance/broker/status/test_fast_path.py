"""What a broker says of its compiled fast path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.broker.status.fast_path import fast_path_status
from appliance.errors import StartError
from appliance.fast_path import loader
from appliance.fast_path.loader import FastPathStatus
from appliance.settings.roles import BrokerConfig
from store.base.config import MessageStoreConfig

MADE = "Cython 3.3.1, cc 1"


@pytest.fixture
def present(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(loader.VARIABLE, raising=False)
    monkeypatch.setattr(loader, "_found", lambda sanitize: (loader, MADE))


def status(*, broker: dict[str, Any] | None = None, store: dict[str, Any] | None = None) -> FastPathStatus:
    root = {"root": Path("/nowhere")}
    return fast_path_status(BrokerConfig(**(broker or {})), MessageStoreConfig(**(root | (store or {}))))


def test_it_is_on_when_it_is_there(present: None) -> None:
    assert status() == (True, MADE)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"broker": {"fast_path_enable": False}}, "fastPathEnable=false"),
        ({"store": {"consume_queue_ext_enable": True}}, "enableConsumeQueueExt=true"),
    ],
)
def test_a_broker_without_it_says_why(present: None, given: dict[str, Any], why: str) -> None:
    assert str(status(**given)) == f"off ({why})"


def test_a_broker_that_has_to_have_it_does_not_start_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(loader.VARIABLE, raising=False)
    monkeypatch.setattr(loader, "_found", lambda sanitize: (None, "not compiled"))
    assert str(status()) == "off (not compiled)"
    monkeypatch.setenv(loader.VARIABLE, "on")
    with pytest.raises(StartError, match="not compiled"):
        status()
