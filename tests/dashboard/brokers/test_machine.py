"""The page of brokers says of the machine what `gantry doctor` says, in the language of the page."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.utils import translation

from appliance.cli.checks.every import At, look
from appliance.settings.appliance_config import ApplianceConfig
from dashboard.brokers.machine import machine_checks
from dashboard.models.management import Role, User
from dashboard.status.check import Level
from tests.dashboard.conftest import Client, api_for


def without_figures(sentence: str) -> str:
    """Free memory and the clock move between two looks."""
    return re.sub(r"\d[\d.,:]*", "", sentence)


def test_the_sentences_are_those_of_the_doctor_and_translated(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path)
    shown = machine_checks(config)
    assert len(shown) == len(look(config, At.PAGE)) > 3
    sentences = {without_figures(one.sentence) for one in look(config, At.PAGE)}
    assert sentences <= {without_figures(one.title) for one in shown}
    assert [check.level for check in shown] == sorted((check.level for check in shown), reverse=True)
    assert Level.BAD not in {check.level for check in shown}, "the appliance runs"
    with translation.override("zh-hans"):
        assert not {check.title for check in machine_checks(config)} & {check.title for check in shown}


async def test_the_page_folds_what_needs_no_attention(log_in: Client) -> None:
    shown = machine_checks(settings.APPLIANCE)
    page = (await (await log_in(Role.OPERATOR)).get("/brokers")).content.decode()
    above, _, folded = page.partition('id="machine-good"')
    good = sum(check.level is Level.GOOD for check in shown)
    assert good and f"{good} check" in folded
    assert folded.count('<span class="tag tag-good">') == good and 'class="tag tag-good"' not in above


async def test_rest_has_the_same_list(users: dict[str, User]) -> None:
    """The clock's sentence has the time, and free memory moves: their levels are compared."""
    status, answer = await (await api_for(users["reader"])).call("get", "/machine")
    shown = machine_checks(settings.APPLIANCE)
    assert status == 200 and answer["total"] == len(shown) and answer["next"] is None
    assert [one["level"] for one in answer["items"]] == [check.level.word for check in shown]
    assert len({one["title"] for one in answer["items"]} & {check.title for check in shown}) >= len(shown) - 2
