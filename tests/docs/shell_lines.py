"""Each line that the pages show for a shell: what runs it, or why nothing does. The first rule that fits counts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.docs.pages import SHELL

HERE = "tests/docs/test_commands_run.py"


@dataclass(frozen=True)
class Line:
    """A line with its page; `command` is without the comment behind it."""

    page: str
    place: str
    command: str


LINES = [
    Line(block.page, str(block), command)
    for block in SHELL
    for command in (line.partition(" #")[0].strip() for line in block.code.splitlines())
    if command
]

# page (empty: any), what the command begins with, the test that runs it
RUN = (
    ("migration.md", "", "tests/interop/migration/test_page.py"),
    ("failover-runbook.md", "", "tests/faults/failover/test_verbs.py"),
    ("README.md", "git clone", "tests/deploy/test_scripts.py"),
    ("README.md", "cd gantrymq", "tests/deploy/test_scripts.py"),
    ("README.md", "deploy/up", "tests/deploy/test_scripts.py"),
    ("README.md", "python3 -m venv", "tests/deploy/test_appliance_wheel.py"),
    ("README.md", "gantry/bin/", "tests/deploy/test_appliance_wheel.py"),
    ("README.md", "pip install gantrymq", "tests/test_wheel.py"),
    ("run.md", "./gantry", "tests/interop/test_single_file.py"),
    ("run.md", "/opt/gantrymq/", "tests/deploy/test_appliance_wheel.py"),
    ("run.md", "python3 -m venv", "tests/deploy/test_appliance_wheel.py"),
    ("run.md", "gantry up --attach", "tests/dashboard/attached/test_command.py"),
    ("run.md", "source <(gantry completion", "tests/appliance/cli/test_completion.py"),
    ("run.md", "gantry completion", "tests/appliance/cli/test_completion.py"),
    ("support.md", "gantry support-bundle", "tests/appliance/cli/support/test_bundle.py"),
    ("definitions.md", "gantry admin", "tests/dashboard/definitions/test_definitions.py"),
    ("drain.md", "gantry admin", "tests/appliance/cli/admin/draining/test_verbs.py"),
    ("containers.md", "deploy/build-binary", "tests/interop/test_single_file.py"),
    ("containers.md", "docker build", "tests/interop/test_single_file.py"),
    ("reports.md", "deploy/build-reports", "tests/interop/test_single_file.py"),
    ("containers.md", "gantry ready", "tests/appliance/cli/doctor/test_running.py"),
    ("containers.md", "kubectl create secret", "tests/deploy/test_containers.py"),
    ("scale.md", "deploy/extra", "tests/deploy/test_scripts.py"),
    ("CONTRIBUTING.md", "deploy/test", ".ci/run"),
    ("service.md", "deploy/build-deb", ".ci/run"),
    ("service.md", "sudo apt install ", "tests/deploy/test_service.py"),
    ("upgrade.md", "git fetch", HERE),
    ("upgrade.md", "git show", HERE),
    ("upgrade.md", "bash .git/upgrade", "tests/deploy/test_upgrade.py"),
    ("upgrade.md", "deploy/upgrade", "tests/deploy/test_upgrade.py"),
    ("upgrade.md", "deploy/up ", "tests/deploy/test_scripts.py"),
    ("reports.md", "gantry install-reports --from", "tests/appliance/cli/install_reports/test_packed.py"),
    ("tls.md", "gantry tls create", "tests/appliance/cli/test_tls.py"),
    ("tls.md", "deploy/up --tls-cert", "tests/dashboard/web/test_https.py"),
    ("tls.md", "gantry up --trusted-proxies", "tests/dashboard/web/test_behind_proxies.py"),
    ("replication.md", "GANTRY_WORKER_HANG_S=0 gantry up", "tests/faults/failover/test_gantry_up.py"),
    ("replication.md", "kill -", "tests/faults/failover/test_gantry_up.py"),
    ("replication.md", "gantry admin promote broker-a --accept-unknown", "tests/faults/failover/test_gantry_up.py"),
    ("replication.md", "gantry admin ha join", "tests/faults/failover/test_verbs.py"),
    ("replication.md", "gantry admin ha members", "tests/faults/failover/test_verbs.py"),
    ("replication.md", "gantry admin ha", "tests/faults/failover/test_runbook.py"),
    ("replication.md", "gantry admin switchover", "tests/appliance/broker/replication/test_promotion.py"),
    ("replication.md", "gantry admin settle", "tests/faults/failover/test_runbook.py"),
    ("performance.md", ".venv/bin/python -m pip", "tests/deploy/test_scripts.py"),
    ("performance.md", ".venv/bin/python -m appliance.fast_path.build", "tests/appliance/fast_path/test_build.py"),
    ("performance.md", "python -m tests.bench.group", "tests/bench/group/test_program.py"),
    ("performance.md", "gantry bench", "tests/bench/test_bench.py"),
    ("performance.md", "python -m tests.bench.store", "tests/bench/store/test_report.py"),
    ("rocketmq5.md", "gantry up", "tests/appliance/cli/test_up.py"),
    ("rocketmq5.md", "gantry admin groups", "tests/interop/migration/test_group_page.py"),
    ("scale.md", "gantry capacity", "tests/appliance/cli/test_capacity.py"),
    *(
        ("scale.md", start, "tests/dashboard/database/test_server.py")
        for start in (".venv/bin/python manage.py", "umask", "export", "createuser")
    ),
    ("accounts.md", "gantry admin alert-channels", "tests/appliance/cli/admin/rest/test_calls.py"),
    ("accounts.md", "gantry ", HERE),
    ("accounts.md", "export GANTRY_TOKEN", HERE),
    ("alerts.md", "gantry ", HERE),
    ("backup.md", "gantry up", "tests/appliance/cli/backup/test_backup.py"),
    ("backup.md", "gantry backup 's3:", "tests/appliance/cli/backup/test_s3_place.py"),
    ("backup.md", "gantry admin ha switchover", "tests/faults/failover/test_gantry_up.py"),
    ("backup.md", "gantry ", HERE),
    ("storage.md", "gantry ", HERE),
    ("troubleshooting.md", "gantry doctor", "tests/appliance/cli/doctor/test_running.py"),
)

# what no test runs, and why; what of it is looked at all the same
NOT_RUN = (
    ("service.md", "sudo gantry install-reports", "fetches half a gigabyte: test_packed.py has it install from a file"),
    ("containers.md", "ADVERTISE=", "takes fixed ports: test_single_file.py runs its image, confined in the same way"),
    ("containers.md", "kubectl apply", "needs a cluster: test_containers.py has kubectl put together what it sends"),
    ("containers.md", "kubectl exec", "needs a cluster: test_containers.py parses what the pod is to run"),
)


def what_runs(line: Line) -> str:
    """The test that runs it, empty if none does. Raises LookupError for a line that no rule names."""
    for page, start, test in RUN:
        if page in ("", line.page) and line.command.startswith(start):
            return test
    for page, start, _why in NOT_RUN:
        if page == line.page and line.command.startswith(start):
            return ""
    raise LookupError(f"{line.place}: {line.command}: tests/docs/shell_lines.py says neither what runs it nor why not")


def run_here(page: str) -> list[str]:
    """The commands of a page that test_commands_run.py has to run, in the page's order."""
    return [re.sub(r"\s+", " ", line.command) for line in LINES if line.page == page and what_runs(line) == HERE]
