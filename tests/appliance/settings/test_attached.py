"""The settings of a dashboard that is attached to another cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.cli.banner import banner, ready_line
from appliance.cli.checks.network import check_attached
from appliance.cli.checks.ports import wanted_ports
from appliance.settings.appliance_config import ApplianceConfig
from appliance.supervisor.worker_specs import worker_stages
from gantrymq.errors import ConfigError

THERE = "10.0.0.7:9876;10.0.0.8:9876"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"attach": "10.0.0.7"}, "host:port"),
        ({"attach": "10.0.0.7:9876;"}, "host:port"),
        ({"attach": THERE, "accounts": True}, "accounts"),
        ({"attach": THERE, "brokers": 2, "slaves": 1}, "slaves and brokers"),
        ({"attach_account": "keys.yml"}, "attach_account"),
        ({"attach_trust": "ca.pem"}, "attach_trust"),
    ],
)
def test_what_contradicts_it_is_refused(tmp_path: Path, given: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        ApplianceConfig(data=tmp_path, **given)  # type: ignore[arg-type]


def test_nothing_but_the_dashboard_is_started_and_the_other_name_servers_are_asked(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path, attach=THERE, http_port=18_080)
    assert worker_stages(config) == []
    assert config.namesrv_address == THERE
    assert [what for what, _, _ in wanted_ports(config)] == ["dashboard"]
    assert ready_line(config) == f"GANTRY READY http=127.0.0.1:18080 namesrv={THERE} data={tmp_path}"
    text = banner(config, version="0", token=None, reports="absent", started_s=1.0)
    assert THERE in text and "Reports" not in text and "SyncProducer" not in text


def test_it_signs_with_the_account_that_was_named_and_trusts_the_authorities_that_were(tmp_path: Path) -> None:
    account = tmp_path / "keys.yml"
    account.write_text("accessKey: reader\nsecretKey: 12345678\n")
    account.chmod(0o600)
    config = ApplianceConfig(
        data=tmp_path, attach=THERE, attach_account=str(account), attach_trust=str(tmp_path / "ca.pem")
    )
    assert config.client_credentials is not None and config.client_credentials.access_key == "reader"
    assert config.client_tls is not None and config.client_tls.trust_cert == str(tmp_path / "ca.pem")
    assert ApplianceConfig.from_environment(config.to_environment()) == config
    assert ApplianceConfig(data=tmp_path, attach=THERE).client_credentials is None


def test_an_account_that_can_not_be_read_is_told_before_the_start(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path, attach=THERE, attach_account=str(tmp_path / "none.yml"))
    [finding] = check_attached(config)
    assert finding.is_fatal and "none.yml" in finding.sentence
