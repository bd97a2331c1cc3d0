"""A kind of rule or channel is declared once: pages, REST and the shell know each of them."""

from __future__ import annotations

import json

from appliance.cli.admin.rest.table import CALLS
from appliance.settings.alert_names import ChannelKind, RuleKind, RuleLevel
from dashboard.alerts.kinds import KINDS, PRESETS, is_named_by_its_kind
from dashboard.alerts.schemas import LEVELS
from dashboard.api.operations import api
from dashboard.cluster.group_values import GroupSummary
from dashboard.groups.trend import watched
from dashboard.history.series import now_and_then
from dashboard.models import alerts as models
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from tests.source_files import ROOT


def test_each_kind_of_rule_can_be_watched() -> None:
    assert list(KINDS) == list(RuleKind)


def test_each_kind_of_channel_can_be_kept_and_each_level_has_a_number() -> None:
    assert models.ChannelKind.values == list(ChannelKind)
    assert list(LEVELS) == list(RuleLevel)


def test_the_page_of_alerts_has_the_rules_that_are_on_from_the_start() -> None:
    page = (ROOT / "docs/operations/alerts.md").read_text(encoding="utf-8")
    first, _, _ = page.partition("\n\nChange them")
    rows = [line.split("|")[1].strip() for line in first.splitlines() if line.startswith("| ")]
    assert sorted(row.lower() for row in rows[1:]) == sorted(preset.name.lower() for preset in PRESETS)


def test_the_name_of_a_preset_says_no_condition_that_was_changed() -> None:
    disk = next(preset for preset in PRESETS if preset.kind == RuleKind.DISK_USED)
    assert is_named_by_its_kind(disk.name, disk.kind, disk.threshold)
    assert not is_named_by_its_kind(disk.name, disk.kind, 90.0), "“75 %” is not true of it any more"


def test_rest_and_the_shell_take_every_kind() -> None:
    schemas = json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")["components"]["schemas"])
    for names in (RuleKind, ChannelKind, RuleLevel):
        assert json.dumps(list(names)) in schemas
    for call, names in (("alert-rules", RuleKind), ("alert-channels", ChannelKind)):
        (field,) = (field for field in CALLS[call]["create"].fields if field.key == "kind")
        for name in names:
            assert field.read(name) == name, "no name is refused by the shell"


def test_a_rule_sees_how_fast_the_cluster_consumes_and_not_what_is_unknown() -> None:
    facts = BrokerFacts("a", "a", 100.0, out_now=12.5)
    snapshot = Snapshot(100.0, "n", None, (BrokerState("a", "a", facts),), (), None)
    kind = KINDS[RuleKind.OUT_BELOW]
    assert kind.read(snapshot) == {"cluster": 12.5} and kind.is_beyond(12.5, 20.0)
    assert kind.read(Snapshot(100.0, "n", None, (), (), None)) == {"cluster": None}


def test_a_rule_sees_how_long_the_oldest_message_of_a_group_is_in_flight() -> None:
    looks = (GroupSummary("g", 5, oldest_lease_ms=90_000), GroupSummary("quiet", 0), GroupSummary("unknown"))
    groups = tuple(watched(look, None, 100.0) for look in looks)
    kind, snapshot = KINDS[RuleKind.GROUP_LEASE], Snapshot(100.0, "n", None, (), (), None, groups=groups)
    assert kind.read(snapshot) == {"g": 90.0, "quiet": 0.0, "unknown": None}
    assert now_and_then(snapshot)["group-lease-s:g"] == 90.0
