"""Changing settings of a running process."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.errors import BrokerError
from appliance.settings.live import MASK, ConfigChange, LiveConfig, plan_update
from appliance.settings.loader import load_broker_config
from appliance.settings.properties_file import PropertiesFile
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from gantrymq.remoting.codes import ResponseCode
from store.base.config import MessageStoreConfig

CHANGEABLE = frozenset({"traceOn", "maxMessageSize", "namesrvAddr"})


def configs() -> list[object]:
    return [BrokerConfig(), MessageStoreConfig()]


def test_every_holder_of_the_configuration_sees_the_change() -> None:
    broker, store = configs()
    plan = plan_update([broker, store], b"traceOn=false\nmaxMessageSize=2048\n", changeable=CHANGEABLE)
    plan.apply()
    assert plan.changes == [ConfigChange("traceOn", "true", "false"), ConfigChange("maxMessageSize", "4194304", "2048")]
    assert plan.idle == []
    assert isinstance(broker, BrokerConfig)
    assert isinstance(store, MessageStoreConfig)
    assert (broker.trace_on, store.message_bytes_max) == (False, 2048)


def test_what_already_is_so_may_be_sent_back() -> None:
    plan = plan_update(configs(), b"brokerName=broker-a\n# remark\nuseless=1\n", changeable=CHANGEABLE)
    assert (plan.changes, plan.idle) == ([], ["useless"])


@pytest.mark.parametrize(
    "line",
    [
        "rocketmqHome=/tmp/;id",
        "configStorePath=/etc/cron.d/x",
        "storePathRootDir=/tmp",
        "namesrvAddr=10.0.0.1:9876",  # even when a list allows it
        "filterServerNums=1",
        "storePathCommitLog=/tmp",
        "tls.server.certPath=/tmp/x",
        "useTLS=true",
        "brokerRole=SLAVE",
        "enableDLegerCommitLog=true",
        "messageStorePlugIn=evil.Plugin",
        "kvConfigPath=/tmp/x",
        "brokerName=other",
        "maxMessageSize=lots",
        "traceOn=perhaps",
    ],
)
def test_what_may_not_change_is_refused_and_nothing_changes(line: str, tmp_path: Path) -> None:
    """S32."""
    both = configs()
    with pytest.raises(BrokerError, match=line.split("=")[0]) as refusal:
        plan_update(both, f"traceOn=false\n{line}\n".encode(), changeable=CHANGEABLE)
    assert refusal.value.code in (ResponseCode.NO_PERMISSION, ResponseCode.INVALID_PARAMETER)
    assert both == configs()


TEXT = """# Our broker.
brokerName = broker-a

  traceOn =  true
! kept too
someKeyOfTomorrow=1
traceOn=true
"""


async def test_a_change_is_written_to_the_file_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    path.write_text(TEXT)
    path.chmod(0o640)
    live = LiveConfig(configs(), changeable=CHANGEABLE, file=PropertiesFile(path))
    version = live.version.counter
    changes, remark = await live.update(b"traceOn=false\nmaxMessageSize=2048\nbrokerName=broker-a\n")
    assert remark is None
    assert [change.key for change in changes] == ["traceOn", "maxMessageSize"]
    head, _, _ = TEXT.rpartition("traceOn=true\n")
    assert path.read_text() == f"{head}traceOn=false\nmaxMessageSize=2048\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["broker.properties"]
    assert live.version.counter == version + 1


async def test_after_a_restart_the_change_is_still_there(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    path.write_text("brokerName=broker-x\n")
    config, store, _ = load_broker_config(path)
    await LiveConfig([config, store], changeable=CHANGEABLE, file=PropertiesFile(path)).update(b"maxMessageSize=2048")
    assert load_broker_config(path)[1].message_bytes_max == 2048


async def test_without_a_file_the_sender_is_told(tmp_path: Path) -> None:
    live = LiveConfig(configs(), changeable=CHANGEABLE)
    assert "without a file" in str((await live.update(b"traceOn=false")).remark)
    assert (await live.update(b"traceOn=false")).remark is None  # nothing changed


async def test_what_can_not_be_written_is_in_force_and_the_sender_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live = LiveConfig(configs(), changeable=CHANGEABLE, file=PropertiesFile(tmp_path / "gone" / "broker.properties"))
    changes, remark = await live.update(b"traceOn=false")
    assert [change.key for change in changes] == ["traceOn"]
    assert "until the process ends: broker.properties can not be written" in (remark or "")
    assert b"traceOn=false\n" in live.text()
    assert [record for record in caplog.records if getattr(record, "event", "") == "settings_not_written"]


async def test_a_key_without_meaning_is_named_with_the_reason() -> None:
    live = LiveConfig(configs(), changeable=CHANGEABLE)
    remark = (await live.update(b"sendMessageThreadPoolNums=3\nnonsense=1")).remark or ""
    assert "sendMessageThreadPoolNums (one event loop" in remark
    assert "nonsense (unknown)" in remark


async def test_a_flood_of_settings_is_refused() -> None:
    with pytest.raises(BrokerError, match="bytes of settings"):
        await LiveConfig(configs(), changeable=CHANGEABLE).update(b"a=1\n" * 300_000)


async def test_secrets_are_masked_and_the_mask_changes_nothing() -> None:
    """S33."""
    config = NamesrvConfig(tls_cert="c.pem", tls_key_password="open sesame", tls_client_key_password="too")
    live = LiveConfig([config], changeable=CHANGEABLE)
    text = live.text()
    assert b"sesame" not in text
    assert f"tls.server.keyPassword={MASK}\n".encode() in text
    assert (await live.update(text)).changes == []  # tools send back what they read


def test_what_exists_in_one_way_only_is_shown_too() -> None:
    lines = LiveConfig(configs(), changeable=CHANGEABLE).text().decode().splitlines()
    assert {"brokerRole=ASYNC_MASTER", "filterServerNums=0"} <= set(lines)  # mqadmin exportConfigs asks for them


async def test_a_setting_tells_whether_it_stood_in_the_file_or_was_changed_since(tmp_path: Path) -> None:
    path = tmp_path / "broker.properties"
    path.write_text("# ours\nfileReservedTime=48\nnoSuchSetting=1\n")
    live = LiveConfig(configs(), changeable=CHANGEABLE, file=PropertiesFile(path))
    assert live.origins() == {"keysInFile": "fileReservedTime", "keysChanged": "none"}
    await live.update(b"maxMessageSize=2048")
    key, _, at = live.origins()["keysChanged"].partition(":")
    assert key == "maxMessageSize" and int(at) > 1_700_000_000_000
    assert live.origins()["keysInFile"] == "fileReservedTime", "as it was at the start"
    assert LiveConfig(configs(), changeable=CHANGEABLE).origins() == {"keysInFile": "none", "keysChanged": "none"}
