"""A broker's settings on a page: masked, checked, compared before they are changed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.settings.loader import live_keys
from appliance.settings.roles import BrokerConfig
from dashboard.cluster.settings_table import MASK, broker_settings, read_changes
from dashboard.models.management import Role, User
from gantrymq.client.admin.brokers import SettingOrigins
from store.base.config import MessageStoreConfig
from tests.dashboard.conftest import Client, api_for, gateway_to
from tests.harness import ServingCluster, serving

CHANGEABLE = live_keys(BrokerConfig, MessageStoreConfig)
NASTY = "<script>alert('x')</script>"


@pytest_asyncio.fixture(loop_scope="session")
async def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServingCluster]:
    """A cluster whose settings may be spoiled."""
    async with serving(tmp_path) as running, gateway_to(running.namesrv_address, monkeypatch):
        yield running


def address(cluster: ServingCluster) -> str:
    return f"/broker/{cluster.broker.config.broker_name}/settings"


def test_secrets_are_masked_whatever_the_broker_said() -> None:
    rows = {
        row.key: row
        for row in broker_settings(
            {"tls.server.keyPassword": "hush", "secretKey": "x", "accessKey": "y", "brokerName": "b"}
        )
    }
    assert [rows[key].value for key in ("tls.server.keyPassword", "secretKey", "accessKey")] == [MASK] * 3
    assert rows["brokerName"].value == "b"
    assert all(row.refusal for row in rows.values())


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("fileReservedTime", "0", "from 1 to"),
        ("fileReservedTime", "soon", "whole number"),
        ("longPollingEnable", "perhaps", "true or false"),
        ("brokerPermission", "5", "one of"),
        ("deleteWhen", "04\nfilterServerNums=1", "one line"),
        ("deleteWhen", "x" * 2000, "At most"),
        ("storePathRootDir", "/tmp/x", "edit the file"),
        ("rocketmqHome", "/tmp/x", "edit the file"),
        ("namesrvAddr", "evil:9876", "edit the file"),
        ("listenPort", "1", "edit the file and restart"),
        ("filterServerNums", "1", "edit the file"),
        ("noSuchSetting", "1", "no such setting"),
    ],
)
def test_what_can_not_be_is_refused_with_a_reason(key: str, value: str, word: str) -> None:
    now = dict.fromkeys((*CHANGEABLE, "storePathRootDir", "rocketmqHome", "namesrvAddr", "filterServerNums"), "1")
    now |= {"listenPort": "10911", "filterServerNums": "0"}
    changes, problems = read_changes(broker_settings(now), {key: value})
    assert changes == [] and word in problems[key]


def test_what_stays_is_no_change() -> None:
    rows = broker_settings({"fileReservedTime": "72", "listenPort": "10911"})
    assert read_changes(rows, {"fileReservedTime": " 72 ", "listenPort": "10911"}) == ([], {})


def test_where_a_setting_comes_from_is_told_as_far_as_the_broker_tells_it() -> None:
    values = {"fileReservedTime": "48", "maxMessageSize": "2048", "deleteWhen": "04", "brokerIP1": "10.0.0.1"}
    origins = SettingOrigins(frozenset({"fileReservedTime", "maxMessageSize"}), {"maxMessageSize": 5000})
    rows = {row.key: row for row in broker_settings(values, origins)}
    sources = {key: row.source for key, row in rows.items()}
    assert sources == {
        "fileReservedTime": "file", "maxMessageSize": "changed while it runs", "deleteWhen": "default",
        "brokerIP1": "follows from others",
    }  # fmt: skip
    assert rows["maxMessageSize"].changed_at == 5.0
    apache = {row.key: row.source for row in broker_settings(values)}
    assert (apache["deleteWhen"], apache["fileReservedTime"]) == ("default", "set")


async def test_a_changed_setting_says_by_whom_and_goes_back_to_its_default(log_in: Client, own: ServingCluster) -> None:
    client = await log_in(Role.ADMIN)
    default = str(own.broker.store_config.file_reserved_hours)
    form = {"set.fileReservedTime": "5", "was.fileReservedTime": default, "do": "save"}
    assert (await client.post(address(own), form)).status_code == 302
    page = (await client.get(address(own) + "?show=differing&q=fileReserved")).content.decode()
    assert "changed while it runs" in page and f"was {default}" in page and "admin, " in page
    difference = (await client.post(address(own), {"revert": "fileReservedTime"})).content.decode()
    assert "<del>5</del>" in difference and "<ins>72</ins>" in difference and "Change 1 setting" in difference
    assert own.broker.store_config.file_reserved_hours == 5, "looking changes nothing"
    entry = (await client.get(address(own).removesuffix("/settings"))).content.decode()
    assert "broker settings changed" in entry and "Recent changes" in entry
    api = await api_for(await User.objects.aget(username="admin"), "config")
    _, told = await api.call("get", f"/brokers/{own.broker.config.broker_name}/settings")
    [row] = [one for one in told["items"] if one["key"] == "fileReservedTime"]
    assert (row["source"], row["changed_by"]) == ("changed while it runs", "admin")


async def test_all_pages_count_the_same_settings_as_changed(log_in: Client, own: ServingCluster) -> None:
    """Those that follow from others, or have no effect, were counted beside the filter and nowhere else."""
    client = await log_in(Role.ADMIN)
    await client.post(address(own), {"set.fileReservedTime": "5", "do": "save"})
    counted = re.search(r"([0-9]+)\s+settings?</summary>", (await client.get("/settings")).content.decode())
    page = (await client.get(address(own) + "?show=differing")).content.decode()
    rows = page.count('<th scope="row"')
    assert counted is not None and int(counted[1]) == rows == 1 and f"not the default ({rows})" in page
    assert re.findall("<details.* id=.section-([a-z]+)", page) == ["changed"]
    assert "rocketmq.<wbr>broker.<wbr>diskSpaceWarningLevelRatio" in (await client.get(address(own))).content.decode()


async def test_every_setting_is_there_and_only_allowed_ones_have_a_field(log_in: Client, own: ServingCluster) -> None:
    page = (await (await log_in(Role.ADMIN)).get(address(own))).content.decode()
    for key in CHANGEABLE:
        assert f'name="set.{key}"' in page, key
    assert page.count('name="set.') == len(CHANGEABLE)
    assert "storePathRootDir" in page and "edit the file" in page
    page = (await (await log_in(Role.ADMIN)).get(address(own) + "?q=fileReserved")).content.decode()
    assert page.count('name="set.') == 1


async def test_a_change_is_shown_first_and_made_after(log_in: Client, own: ServingCluster) -> None:
    client = await log_in(Role.ADMIN)
    before = own.broker.store_config.file_reserved_hours
    form = {"set.fileReservedTime": "5", "was.fileReservedTime": str(before), "set.traceOn": "true"}
    page = (await client.post(address(own), form)).content.decode()
    assert "Change 1 setting" in page
    assert f"<del>{before}</del>" in page and "<ins>5</ins>" in page
    assert own.broker.store_config.file_reserved_hours == before, "looking changes nothing"
    saved = await client.post(address(own), form | {"do": "save"}, follow=True)
    assert own.broker.store_config.file_reserved_hours == 5
    assert "1 setting changed; the broker&#x27;s remark: holds until the process ends" in saved.content.decode()


async def test_who_was_overtaken_is_told_and_changes_nothing(log_in: Client, own: ServingCluster) -> None:
    client = await log_in(Role.ADMIN)
    form = {"set.fileReservedTime": "5", "was.fileReservedTime": "999", "do": "save"}
    answer = await client.post(address(own), form)
    assert answer.status_code == 422 and "It has since been changed to" in answer.content.decode()
    assert own.broker.store_config.file_reserved_hours != 5


async def test_one_bad_value_keeps_all_from_being_changed(log_in: Client, own: ServingCluster) -> None:
    client = await log_in(Role.ADMIN)
    form = {"set.fileReservedTime": "5", "set.brokerPermission": "5", "do": "save"}
    answer = await client.post(address(own), form)
    page = answer.content.decode()
    assert answer.status_code == 422 and "Allowed: one of 2, 4, 6" in page
    assert 'value="5"' in page, "what was typed stays"
    assert own.broker.store_config.file_reserved_hours != 5


async def test_names_and_values_are_text(log_in: Client, own: ServingCluster) -> None:
    client = await log_in(Role.ADMIN)
    answer = await client.post(address(own), {f"set.{NASTY}": NASTY, "set.regionId": NASTY})
    assert NASTY not in answer.content.decode() and answer.status_code == 422
    answer = await client.post(address(own), {"set.regionId": NASTY})
    assert NASTY not in answer.content.decode() and "<ins>&lt;script" in answer.content.decode()
    assert (await client.get("/broker/%3Cscript%3E/settings")).status_code == 404
