"""Consumer groups and their settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.groups.subscription_group import BUILT_IN_GROUPS, SubscriptionGroupManager
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig

GOLDEN = Path(__file__).parents[1] / "golden_config" / "subscriptionGroup.json"


def manager(folder: Path, **settings: Any) -> SubscriptionGroupManager:
    groups = SubscriptionGroupManager(folder / "subscriptionGroup.json", BrokerConfig(**settings))
    groups.load()
    return groups


def test_rocketmqs_own_groups_are_there(tmp_path: Path) -> None:
    assert set(manager(tmp_path).configs) == set(BUILT_IN_GROUPS)


def test_an_unknown_group_is_created_by_being_asked_for(tmp_path: Path) -> None:
    groups = manager(tmp_path)
    version = groups.data_version.counter
    assert groups.get("g") == SubscriptionGroupConfig("g")
    assert groups.get("g") is groups.get("g")
    assert groups.data_version.counter == version + 1


def test_creation_can_be_forbidden_but_not_of_the_systems_groups(tmp_path: Path) -> None:
    groups = manager(tmp_path, auto_create_subscription_group=False)
    assert groups.get("g") is None
    assert groups.get("CID_RMQ_SYS_TRANS") is not None


@pytest.mark.parametrize("name", ["", "a b", "a@b", "a" * 256])
def test_bad_names_make_no_group(tmp_path: Path, name: str) -> None:
    groups = manager(tmp_path)
    assert groups.get(name) is None
    with pytest.raises(MessageRejected):
        groups.update(SubscriptionGroupConfig(name))


async def test_a_real_brokers_file_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "subscriptionGroup.json"
    path.write_bytes(GOLDEN.read_bytes())
    assert json.loads(await manager(tmp_path).body()) == json.loads(GOLDEN.read_bytes())


async def test_tools_see_a_suspended_group_that_the_file_does_not_know(tmp_path: Path) -> None:
    groups = manager(tmp_path)
    for name in ("CG1", "CG2"):
        groups.get(name)
    groups.suspend("CG1")
    table = json.loads(await groups.body())["subscriptionGroupTable"]
    assert [table[name]["consumeEnable"] for name in ("CG1", "CG2")] == [False, True]
    groups.persist()
    assert '"consumeEnable":false' not in (tmp_path / "subscriptionGroup.json").read_text()


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    groups = manager(tmp_path)
    groups.update(SubscriptionGroupConfig("g", consume_enable=False, retry_max_times=3))
    groups.update(SubscriptionGroupConfig("in-order", consume_message_orderly=True))
    groups.get("gone")
    assert groups.delete("gone")
    assert not groups.delete("gone")
    groups.persist()
    again = manager(tmp_path)
    assert again.configs == groups.configs
    assert again.data_version == groups.data_version
