"""Expensive tests take turns: a usual run takes a quarter of their cases; four, `--long-part 1/4` to `4/4`, take all.

Whoever names a module or a folder in tests/ on the command line gets all of it. What the others show in part, in every
run: for failover and replication `appliance/broker`, for clients in Java `interop/kinds` and `interop/mqadmin`, for
screens `e2e/test_axe.py` and `dashboard`, for gRPC `appliance/proxy`, for reports `dashboard/reports`, for packages the
rest of `deploy`.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import pytest

from tests.suite.kinds import TESTS
from tests.suite.long_runs import in_turn

# Folders, modules, functions and cases, of tests that take some seconds of a core each. Paths begin in tests/.
EXPENSIVE = (
    "appliance/broker/failover/test_candidate.py",
    "appliance/cli/admin/draining/test_verbs.py",
    "appliance/cli/backup/test_backup.py::test_a_backup_under_load_has_all_that_was_acknowledged_before_it",
    "appliance/cli/backup/test_s3_place.py::"
    "test_a_backup_under_load_comes_back_from_s3_with_all_that_was_acknowledged_before_it",
    "appliance/fast_path/test_sanitized.py",
    "appliance/reports/test_cluster.py",
    "appliance/reports/test_kills.py",
    "appliance/reports/test_report_command.py",
    "appliance/reports/with_spark",
    "bench/group/test_program.py",
    "dashboard/api/test_every_phase.py",
    "dashboard/database/test_state.py",
    "dashboard/web/test_admin_verbs.py",
    "deploy/test_scripts.py::test_one_command_installs_and_serves_and_the_next_start_is_quick",
    "deploy/test_scripts.py::test_what_can_not_compile_the_fast_path_says_so_and_goes_on",
    "deploy/test_scripts.py::test_what_few_settings_need_is_installed_beside_the_rest",
    "deploy/test_service.py::test_lintian_finds_nothing_and_each_override_is_needed",
    "deploy/test_service.py::test_the_package_is_installed_serves_and_is_upgraded_removed_and_purged",
    "deploy/test_upgrade.py::test_a_way_back_from_half_a_checkout_that_was_killed_is_ended_too",
    "deploy/test_upgrade.py::test_a_way_back_that_was_killed_is_ended_by_the_same_command",
    "deploy/test_upgrade.py::test_an_upgrade_that_was_killed_is_ended_by_the_same_command_or_by_the_way_back",
    "e2e/test_first_light.py",
    "e2e/test_inert.py",
    "e2e/test_night.py",
    "e2e/test_report_charts.py",
    "e2e/test_sign_in.py",
    "faults/failover/test_damaged_records.py",
    "faults/failover/test_deadline.py",
    "faults/failover/test_first_cases.py",
    "faults/failover/test_full_disk.py",
    "faults/failover/test_gantry_up.py",
    "faults/failover/test_killed_member.py",
    "faults/failover/test_rounds.py",
    "faults/failover/test_runbook.py",
    "faults/failover/test_still_slave.py",
    "faults/failover/test_verbs.py",
    "faults/grpc",
    "faults/pop",
    "faults/replication/stores",
    "faults/replication/test_copying.py",
    "faults/replication/test_hand_over.py",
    "faults/replication/test_killed_cut.py",
    "faults/replication/test_network_cases.py",
    "faults/replication/test_network_rounds.py",
    "faults/replication/test_offsets.py",
    "faults/replication/test_on_record.py",
    "faults/replication/test_promotion.py",
    "faults/replication/test_stale_promotion.py",
    "faults/replication/test_switch_over.py",
    "faults/replication/test_tables_under_cuts.py",
    "faults/test_again_after_kill.py",
    "faults/test_bad_disk.py",
    "faults/test_burst.py",
    "faults/test_hostile.py",
    "faults/test_kill.py",
    "faults/test_kill_transactions.py",
    "faults/test_killed_member.py",
    "faults/test_overload.py",
    "faults/test_power_cut.py",
    "faults/test_public_exploits.py",
    "faults/test_suspended.py",
    "faults/test_two_owners.py",
    "gantrymq/contrib/spark/test_apache.py",
    "gantrymq/contrib/spark/test_interpreter.py",
    "gantrymq/contrib/spark/test_with_spark.py",
    "gantrymq/type_checkers/test_type_checkers.py::test_pyright_takes_what_is_right_and_rejects_what_is_wrong",
    "interop/failover",
    "interop/flows",
    "interop/grpc",
    "interop/kinds/test_every_kind.py::test_java_has_every_kind[apache]",
    "interop/migration",
    "interop/rest",
    "interop/stores",
    "interop/test_appliance_accounts.py",
    "interop/test_masters_at_name_servers.py",
    "interop/test_single_file.py",
    "interop/test_sql_subscriptions.py",
    "test_wheel.py::test_the_wheels_data_source_runs_on_executors_that_have_no_checkout",
)
FEW = 4  # as many as turns. Modules that have fewer cases take turns with each other, so that one may be left out.


def left_out(items: Sequence[pytest.Item], arguments: Sequence[str]) -> set[pytest.Item]:
    """Those that a run with these arguments does not take. arguments: paths, also with ::names."""
    paths = {Path(argument.partition("::")[0]).resolve() for argument in arguments}
    named = {path for path in paths if TESTS in path.parents}  # tests/ itself is a run of everything
    waiting = waiting_of(item.nodeid for item in items if named.isdisjoint((item.path, *item.path.parents)))
    return {item for item in items if item.nodeid in waiting}


def waiting_of(cases: Iterable[str]) -> set[str]:
    """Those of these whose turn it is not."""
    waiting: set[str] = set()
    for those in takers_of(cases).values():
        waiting |= set(those) - set(in_turn(those))
    return waiting


def takers_of(cases: Iterable[str]) -> dict[str, list[str]]:
    """Those that take turns with each other: by the module, the few of some modules under no name."""
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        if not places_of(case).isdisjoint(EXPENSIVE):
            modules[case.partition("::")[0]].append(case)
    takers: defaultdict[str, list[str]] = defaultdict(list)
    for module, those in modules.items():
        takers[module if len(those) >= FEW else ""] += those
    return takers


def places_of(case: str) -> set[str]:
    """All names that may stand above for it."""
    name = case.removeprefix("tests/")
    return {name, name.partition("[")[0], *_places_of_module(name.partition("::")[0])}


@functools.cache
def _places_of_module(module: str) -> tuple[str, ...]:
    return (module, *map(str, PurePosixPath(module).parents))
