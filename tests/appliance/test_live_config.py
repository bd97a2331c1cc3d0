"""Changing settings of a running process."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.config import BrokerConfig
from appliance.errors import BrokerError
from appliance.live_config import ConfigChange, update_settings
from gantrymq.remoting.codes import ResponseCode
from store.config import MessageStoreConfig

CHANGEABLE = frozenset({"traceOn", "maxMessageSize", "namesrvAddr"})


def configs() -> list[object]:
    return [BrokerConfig(), MessageStoreConfig()]


def test_every_holder_of_the_configuration_sees_the_change() -> None:
    broker, store = configs()
    changes, ignored = update_settings([broker, store], b"traceOn=false\nmaxMessageSize=2048\n", changeable=CHANGEABLE)
    assert changes == [ConfigChange("traceOn", "true", "false"), ConfigChange("maxMessageSize", "4194304", "2048")]
    assert ignored == []
    assert isinstance(broker, BrokerConfig)
    assert isinstance(store, MessageStoreConfig)
    assert (broker.trace_on, store.message_bytes_max) == (False, 2048)


def test_what_already_is_so_may_be_sent_back() -> None:
    changes, ignored = update_settings(configs(), b"brokerName=broker-a\n# remark\nuseless=1\n", changeable=CHANGEABLE)
    assert (changes, ignored) == ([], ["useless"])


@pytest.mark.parametrize(
    "line",
    [
        "rocketmqHome=/tmp/;id",
        "configStorePath=/etc/cron.d/x",
        "storePathRootDir=/tmp",
        "namesrvAddr=10.0.0.1:9876",  # even when a list allows it
        "filterServerNums=1",
        "aclEnable=false",
        "brokerName=other",
        "maxMessageSize=lots",
        "traceOn=perhaps",
    ],
)
def test_what_may_not_change_is_refused_and_nothing_changes(line: str, tmp_path: Path) -> None:
    both = configs()
    with pytest.raises(BrokerError, match=line.split("=")[0]) as refusal:
        update_settings(both, f"traceOn=false\n{line}\n".encode(), changeable=CHANGEABLE)
    assert refusal.value.code in (ResponseCode.NO_PERMISSION, ResponseCode.SYSTEM_ERROR)
    assert both == configs()
