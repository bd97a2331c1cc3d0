"""The page of brokers says of the machine what `gantry doctor` says, in the language of the page."""

from __future__ import annotations

from pathlib import Path

from django.utils import translation

from appliance.cli.checks.every import At, look
from appliance.settings.appliance_config import ApplianceConfig
from dashboard.brokers.machine import machine_checks
from dashboard.status.check import Level


def test_the_sentences_are_those_of_the_doctor_and_translated(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path)
    shown = machine_checks(config)
    assert len(shown) == len(look(config, At.PAGE)) > 3
    assert {one.sentence for one in look(config, At.PAGE) if "clock" not in one.text} <= {one.title for one in shown}
    assert [check.level for check in shown] == sorted((check.level for check in shown), reverse=True)
    assert Level.BAD not in {check.level for check in shown}, "the appliance runs"
    with translation.override("zh-hans"):
        assert not {check.title for check in machine_checks(config)} & {check.title for check in shown}
