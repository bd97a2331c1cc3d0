"""Expensive tests take turns: a usual run takes a quarter of them, four with `--long-part 1/4` to `4/4` take all.

Paths begin in tests/, and end with a module, a function of it, or a case of that. Whoever names a module on the command
line gets all of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePosixPath

import pytest

from tests.suite.long_runs import in_turn

FEW = 4  # cases: as many as turns

# Of each module here, or in a folder that stands here, a run takes a quarter of the cases. Those that have fewer than
# four take turns with the others of their folder.
CASE_BY_CASE = (
    "appliance/broker/failover/test_candidate.py",
    "appliance/fast_path/test_sanitized.py",
    "appliance/reports/test_cluster.py",
    "appliance/reports/test_report_command.py",
    "appliance/reports/with_spark",
    "deploy/test_scripts.py::test_one_command_installs_and_serves_and_the_next_start_is_quick",
    "deploy/test_scripts.py::test_what_few_settings_need_is_installed_beside_the_rest",
    "deploy/test_scripts.py::test_what_can_not_compile_the_fast_path_says_so_and_goes_on",
    "deploy/test_service.py::test_the_package_is_installed_serves_and_is_upgraded_removed_and_purged",
    "e2e/test_first_light.py",
    "e2e/test_inert.py",
    "e2e/test_night.py",
    "e2e/test_report_charts.py",
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
    "faults/replication/stores",
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
    "faults/test_overload.py",
    "faults/test_power_cut.py",
    "faults/test_public_exploits.py",
    "faults/test_suspended.py",
    "faults/test_two_owners.py",
    "gantrymq/contrib/spark/test_interpreter.py",
    "gantrymq/contrib/spark/test_with_spark.py",
    "interop/failover",
    "interop/flows",
    "interop/grpc",
    "interop/migration",
    "interop/rest",
    "interop/stores",
    "interop/test_masters_at_name_servers.py",
    "interop/test_single_file.py",
)

# Each of these waits for its turn as a whole: it is expensive, and shows again what a cheaper one shows. Of that, every
# run takes one case at least.
SHOWN_BY = {
    # The same flows, of another client.
    "interop/grpc/test_flows.py::test_the_go_client": "interop/grpc/test_flows.py::test_the_java_client",
    "interop/grpc/test_flows.py::test_the_python_client": "interop/grpc/test_flows.py::test_the_node_client",
    "interop/rest/test_generated_clients.py::test_a_python_client_drives_a_day": (
        "interop/rest/test_generated_clients.py::test_a_typescript_client_drives_a_day_and_its_types_hold"
    ),
    "interop/flows/test_groups_on_the_move.py::test_an_ordered_group_hands_queues_over_when_a_member_is_killed": (
        "faults/test_killed_member.py::test_queues_of_a_killed_member_go_on_within_seconds"
    ),
    "interop/grpc/test_filters.py": "interop/grpc/test_flows.py::test_the_java_client",
    "interop/flows/test_java_pop.py": "gantrymq/client/pop/test_pop_consumer.py",
    "interop/flows/test_opentelemetry.py": (
        "interop/flows/test_sdk_and_java.py::test_traces_of_either_client_are_read_by_the_other"
    ),
    "interop/test_sql_subscriptions.py": "interop/test_sql_oracle.py",
    # The same, at another moment.
    "faults/test_again_after_kill.py::test_few_messages_come_again_when_a_broker_is_killed[pushed-3]": (
        "faults/test_again_after_kill.py::test_few_messages_come_again_when_a_broker_is_killed[pushed-2]"
    ),
    "faults/test_again_after_kill.py::test_few_messages_come_again_when_a_broker_is_killed[in_order-4]": (
        "faults/test_again_after_kill.py::test_few_messages_come_again_when_a_broker_is_killed[in_order-2]"
    ),
    # The same, with Apache's broker on the other side, or another store.
    "appliance/broker/status/test_config_handover.py": "interop/stores/test_store_both_ways.py",
    "gantrymq/contrib/spark/test_apache.py": (
        "gantrymq/contrib/spark/test_with_spark.py::test_folder_and_cluster_count_as_duckdb_does"
    ),
    "interop/kinds/test_every_kind.py::test_java_has_every_kind[apache]": (
        "interop/kinds/test_every_kind.py::test_java_has_every_kind[gantry]"
    ),
    "appliance/reports/test_kills.py::test_and_so_is_one_in_a_store[s3]": (
        "appliance/reports/test_kills.py::test_and_so_is_one_in_a_store[file]"
    ),
    "appliance/cli/backup/test_s3_place.py::"
    "test_a_backup_under_load_comes_back_from_s3_with_all_that_was_acknowledged_before_it": (
        "appliance/cli/backup/test_backup.py::test_a_backup_under_load_has_all_that_was_acknowledged_before_it"
    ),
    "interop/failover/test_apaches_name_servers.py": "interop/test_masters_at_name_servers.py",
    # The same, by another tool, hand or way.
    "e2e/test_sign_in.py": "dashboard/sign_in/test_pages.py",
    "appliance/reports/with_spark/test_against_duckdb.py::test_every_report_agrees_with_duckdb": (
        "appliance/reports/with_spark/test_ten_rows.py::test_each_report_of_ten_rows_is_what_a_person_counts"
    ),
    "test_wheel.py::test_the_wheels_data_source_runs_on_executors_that_have_no_checkout": (
        "appliance/reports/test_cluster.py::test_executors_without_the_checkout_read_the_log_and_count_it"
    ),
    "gantrymq/type_checkers/test_type_checkers.py::test_pyright_takes_what_is_right_and_rejects_what_is_wrong": (
        "gantrymq/type_checkers/test_type_checkers.py::test_mypy_takes_what_is_right_and_rejects_what_is_wrong"
    ),
    "dashboard/api/test_every_phase.py": ("dashboard/api/test_document.py::test_each_answer_is_as_the_document_says"),
    "e2e/test_night.py::test_an_alert_at_night_is_found_understood_repaired_and_over[Thumb]": (
        "e2e/test_night.py::test_an_alert_at_night_is_found_understood_repaired_and_over[Keyboard]"
    ),
    "bench/group/test_program.py": (
        "bench/test_bench.py::"
        "test_every_kind_of_scenario_runs_against_our_broker_and_all_that_was_acknowledged_is_stored"
    ),
    # The same, in rounds that dice choose, or by another fault.
    "faults/replication/test_network_rounds.py": "faults/replication/test_network_cases.py",
    "faults/failover/test_deadline.py::test_one_of_three_members_of_etcd_may_be_lost[19]": (
        "faults/failover/test_deadline.py::test_one_of_three_members_of_etcd_may_be_lost[9]"
    ),
}


def left_out(items: Sequence[pytest.Item], arguments: Sequence[str]) -> set[pytest.Item]:
    """Those that a run with these arguments does not take. arguments: paths, also with ::names."""
    named = {Path(argument.partition("::")[0]).resolve() for argument in arguments}
    waiting = waiting_of(item.nodeid for item in items if item.path not in named)
    return {item for item in items if item.nodeid in waiting}


def waiting_of(cases: Iterable[str]) -> set[str]:
    """Those of these whose turn it is not."""
    later = SHOWN_BY.keys() - set(in_turn(list(SHOWN_BY)))
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    waiting = set()
    for case in cases:
        places = places_of(case)
        whole = first_of(places, SHOWN_BY)
        if whole in later:
            waiting.add(case)
        elif not whole and first_of(places, CASE_BY_CASE):
            by_name[first_of(places, SHOWN_BY.values()) or case.partition("::")[0]].append(case)
    turns: defaultdict[str, list[str]] = defaultdict(list)
    for name, those in by_name.items():
        is_alone = len(those) >= FEW or name in SHOWN_BY.values()
        turns[name if is_alone else name.rpartition("/")[0]] += those
    return waiting.union(*(set(those) - set(in_turn(those)) for those in turns.values()))


def first_of(places: Iterable[str], names: Collection[str]) -> str | None:
    return next((place for place in places if place in names), None)


def places_of(case: str) -> list[str]:
    """All names that may stand above for it, the nearest first."""
    name = case.removeprefix("tests/")
    function, module = name.partition("[")[0], name.partition("::")[0]
    return [name, function, module, *map(str, PurePosixPath(module).parents)]
