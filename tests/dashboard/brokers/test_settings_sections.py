"""The sections of a broker's settings: each setting in the one that it is about, what was changed first."""

from __future__ import annotations

from appliance.settings.ignored import IGNORED
from appliance.settings.loader import settings_by_key
from appliance.settings.roles import BrokerConfig
from dashboard.brokers.settings_sections import CHANGED, NO_EFFECT, OTHER, SECTIONS, in_sections, section_of
from dashboard.cluster.settings_table import broker_settings
from store.base.config import MessageStoreConfig

# What is about the broker itself, and so in no section of its own.
OF_THE_BROKER = {
    "brokerClusterName", "brokerName", "brokerId", "brokerPermission", "regionId", "rocketmqHome",
    "startAcceptSendRequestTimeStamp",
}  # fmt: skip


def test_each_setting_has_a_section_and_a_new_one_is_put_into_one_by_hand() -> None:
    keys = settings_by_key(MessageStoreConfig).keys() | settings_by_key(BrokerConfig).keys()
    found = {key: section_of(key) for key in keys}
    assert {key for key, section in found.items() if section == OTHER} == OF_THE_BROKER
    assert set(found.values()) == set(SECTIONS), "no section is empty"
    examples = {"fileReservedTime": "retention", "flushDiskType": "flush", "haListenPort": "replication",
                "aclEnable": "accounts", "tls.server.mode": "accounts", "maxMessageSize": "limits",
                "listenPort": "network", "traceOn": "topics", "longPollingEnable": "consumers"}  # fmt: skip
    assert {key: found[key] for key in examples} == examples


def test_what_was_changed_comes_first_and_what_has_no_effect_last() -> None:
    ignored = next(iter(IGNORED))
    values = {"brokerIP1": "10.0.0.7", "fileReservedTime": "5", "deleteWhen": "04", "listenPort": "10911", ignored: "1"}
    sections = in_sections(broker_settings(values))
    assert [section.key for section in sections] == [CHANGED, "retention", "network", NO_EFFECT]
    assert [row.key for row in sections[0].rows] == ["fileReservedTime", "brokerIP1"], "what can be changed, first"
    assert [row.key for row in sections[1].rows] == ["deleteWhen"], "a setting stands in one place"
    assert (sections[1].changeable, sections[2].changeable) == (1, 0)
