"""schemathesis in full on an appliance of its own: examples, coverage, fuzzing, and steps that build on each other.

It asks as an administrator, so that it may change and delete all there is. With `--long` it looks for half an hour.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.appliance_process import ROOT, RunningAppliance
from tests.suite.long_runs import in_all
from tests.visitor import admin_of

# At most so many seconds of each. Examples are few, and end by themselves.
PHASES = {phase: in_all(15, long=600) for phase in ("coverage", "fuzzing", "stateful")} | {"examples": 60}
EXAMPLES = in_all(2, long=100)
# No end, addresses outside, and what would end the token of these calls.
LEFT_OUT = ("stream_news", "test_alert_channel", "revoke_token", "revoke_token_of", "change_own_password")
# That an address is too long is a refusal, too.
CONFIG = """[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "414", "415", "422", "431", "5xx"]
[checks.positive_data_acceptance]
enabled = false
"""


@pytest.mark.slow
def test_nothing_undocumented_and_no_failure_in_any_phase(tmp_path: Path) -> None:
    with RunningAppliance(tmp_path / "data") as gantry:
        admin_of(gantry)
        users = [sys.executable, "-m", "appliance", "users", "token", "admin", "--scope", "admin"]
        made = subprocess.run([*users, "--data", gantry.data], cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert made.returncode == 0, made.stderr
        (tmp_path / "schemathesis.toml").write_text(CONFIG, encoding="utf-8")
        token = made.stdout.split()[-1]
        command = [
            str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(tmp_path / "schemathesis.toml"),
            "run", f"http://{gantry.http}/api/v1/openapi.json", "-H", f"Authorization: Bearer {token}", "--no-color",
            "--continue-on-failure", "--seed", "1", "--max-examples", str(EXAMPLES), "--generation-database", "none",
            *(word for one in LEFT_OUT for word in ("--exclude-operation-id", one)),
        ]  # fmt: skip
        for phase, seconds in PHASES.items():
            limits = ["--phases", phase, "--max-time", str(seconds)]
            ran = subprocess.run(
                [*command, *limits], cwd=tmp_path, capture_output=True, text=True, timeout=seconds + 500
            )
            assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-2000:]
            assert f"✅ {phase.title()}" in ran.stdout, ran.stdout[-2000:]
