"""What a usual run leaves out as `long`: the dearest tests that show again what a cheaper one shows, which it takes.

Each stands here with that one. Paths begin in tests/, and end with a module, a function of it, or a case of that. A
case of a test that has others may also be marked where its parameters stand.
"""

from __future__ import annotations

from pathlib import Path

from tests.suite.kinds import TESTS

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
        "gantrymq/contrib/spark/test_with_spark.py::test_a_query_counts_as_duckdb_does_out_of_folder_and_cluster"
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
    "dashboard/api/test_every_phase.py": (
        "dashboard/api/test_document.py::test_each_answer_is_one_that_the_document_describes"
    ),
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


def is_shown_elsewhere(module: Path, function: str, case: str) -> bool:
    """Whether a test stands above; case: its name with its parameters."""
    name = module.relative_to(TESTS).as_posix() if module.is_relative_to(TESTS) else module.name
    return any(place in SHOWN_BY for place in (name, f"{name}::{function}", f"{name}::{case}"))
