"""Every setting of RocketMQ 4.9 is known, ignored for a reason, or fixed; none is a typing error."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from appliance.settings.ignored import FIXED, IGNORED, OTHER_NAMES, by_reason, explain_ignored
from appliance.settings.loader import load_broker_config, load_namesrv_config, settings_by_key
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from gantrymq.errors import ConfigError
from store.base.config import MessageStoreConfig

GOLDEN = Path(__file__).parents[2] / "golden" / "settings_of_rocketmq_4.9.csv"

BROKER = {**settings_by_key(BrokerConfig), **settings_by_key(MessageStoreConfig)}
NAMESRV = settings_by_key(NamesrvConfig)


def rows() -> list[tuple[str, str]]:
    with GOLDEN.open(encoding="utf-8") as file:
        return [(row["key"], row["component"]) for row in csv.DictReader(file)]


def class_of(key: str, known: dict[str, object]) -> str:
    if key in known:
        return "known"
    if OTHER_NAMES.get(key, "") in known:
        return "another name"
    return "fixed" if key in FIXED else "ignored" if key in IGNORED else "unknown"


@pytest.mark.parametrize(("key", "component"), rows())
def test_every_setting_of_rocketmq_has_a_class(key: str, component: str) -> None:
    known = NAMESRV if component == "namesrv" else BROKER
    assert class_of(key, dict(known)) != "unknown"


@pytest.mark.parametrize(("key", "component"), rows())
def test_no_setting_is_refused_as_a_typing_error(key: str, component: str, tmp_path: Path) -> None:
    known = NAMESRV if component == "namesrv" else BROKER
    path = tmp_path / "some.conf"
    path.write_text(f"{key}={FIXED[key].value if key in FIXED else ''}\n")
    load = load_namesrv_config if component == "namesrv" else load_broker_config
    kind = class_of(key, dict(known))
    try:
        *_, ignored = load(path)
    except ConfigError as exc:
        assert kind in ("known", "another name")  # an empty text is no number
        assert "unknown setting" not in str(exc)
    else:
        assert ignored == ([key] if kind == "ignored" else [])


def test_a_key_has_one_class_only() -> None:
    known = BROKER.keys() | NAMESRV.keys()
    assert not IGNORED.keys() & known
    assert not FIXED.keys() & known
    assert not IGNORED.keys() & FIXED.keys()
    assert not OTHER_NAMES.keys() & (known | IGNORED.keys() | FIXED.keys())
    assert set(OTHER_NAMES.values()) <= known


@pytest.mark.parametrize("key", sorted(FIXED))
def test_a_fixed_setting_has_but_one_value(key: str, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"{key}=something else\n")
    with pytest.raises(ConfigError, match=key) as refusal:
        load_broker_config(path)
    assert FIXED[key].why in str(refusal.value)


def test_the_reason_stands_beside_the_keys() -> None:
    assert by_reason(["dLegerGroup", "commercialEnable", "dLegerPeers"]) == {
        "RocketMQ declares it and never reads it": ["commercialEnable"],
        "there is no DLedger mode": ["dLegerGroup", "dLegerPeers"],
    }
    assert explain_ignored(["dLegerGroup", "dLegerPeers"]) == "dLegerGroup, dLegerPeers (there is no DLedger mode)"


def test_a_java_property_may_stand_for_a_setting_and_the_setting_wins(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("rocketmq.namesrv.addr=h:1\ncom.rocketmq.remoting.socket.backlog=7\nserverSocketBacklog=8\n")
    config, _, ignored = load_broker_config(path)
    assert (config.namesrv_addresses, config.backlog, ignored) == ("h:1", 8, [])
