"""The look-up of known vulnerabilities: it fails for one that nobody answered for, and for nothing else."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from deploy import audit, lock_file
from deploy.lock_file import BINARY
from tests.conftest import missing

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 11, 22)
KNOWN = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.0"]}
REPORT = {
    "dependencies": [
        {
            "name": "Twisted",
            "version": "1.0",
            "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.0"]}],
        },
        {"name": "django", "version": "5.2", "vulns": []},
        {"name": "unheard-of", "skip_reason": "not found"},
    ]
}
EXCUSE = {"package": "twisted", "id": "CVE-1", "why": "its HTTP client is not used here", "until": "2026-11-22"}


@pytest.mark.parametrize(
    ("exceptions", "open_count", "exit_code"),
    [
        ([], 1, 1),
        ([EXCUSE], 0, 0),
        ([EXCUSE | {"until": "2026-11-21"}], 1, 1),
        ([EXCUSE | {"package": "django"}], 1, 1),
    ],
)
def test_s64_only_a_written_exception_whose_time_is_not_over_excuses(
    exceptions: list[dict[str, str]], open_count: int, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = audit.judge(REPORT, exceptions, TODAY)
    assert (found.looked_up, found.unknown, len(found.open)) == (2, ["unheard-of"], open_count)
    assert audit.tell(found, {}, TODAY) == exit_code
    assert ("VULNERABLE: twisted 1.0: PYSEC-1 (fixed in: 2.0)" in capsys.readouterr().out) is bool(open_count)


def test_the_age_of_the_single_files_interpreter_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "binary.toml"
    text = BINARY.read_text(encoding="utf-8")
    lock.write_text(re.sub(r"(?m)^version = .*", 'version = "v0.0.0-3.14.9-20261101-1"', text, count=1))
    monkeypatch.setattr(lock_file, "BINARY", lock)
    audit.tell(audit.Judgement(), {}, TODAY)
    assert "built on 2026-11-01, 21 days ago" in capsys.readouterr().out


def test_a_database_that_knows_nothing_is_no_clean_bill(capsys: pytest.CaptureFixture[str]) -> None:
    report = {"dependencies": [{"name": "django", "skip_reason": "not found"}]}
    assert audit.tell(audit.judge(report, [], TODAY), {"recorded": "2026-11-22", "versions": 1}, TODAY) == 0
    assert "nothing is known" in capsys.readouterr().out


def test_s64_the_record_has_the_versions_of_the_locks_and_reasons_for_its_exceptions() -> None:
    """S64: whoever changes a lock looks again: deploy/audit --record."""
    record = audit.read_record()
    assert record.items() >= audit.what_is_compared().items(), "look again, and write it down: deploy/audit --record"
    date.fromisoformat(record["recorded"])
    for item in record["exceptions"]:
        assert set(item) == {"package", "id", "why", "until"} and len(item["why"]) > 20
    assert {"django", "cpython", "openssl", "sqlite", "go"} <= set(audit.versions())


def test_another_version_of_one_package_has_to_be_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before, versions = audit.what_is_compared(), audit.versions() | {"django": "0"}
    monkeypatch.setattr(audit, "versions", lambda: versions)
    after = audit.what_is_compared()
    assert after["versions"] == before["versions"] and after["sha256"] != before["sha256"]


@pytest.fixture
def database() -> Iterator[str]:
    """A database in OSV's words that knows one vulnerability, of orjson."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found: dict[str, Any] = {}
            if asked["package"]["name"] == "orjson":
                affected = [{"package": {"name": "orjson", "ecosystem": "PyPI"}, "ranges": []}]
                found = {"vulns": [{"id": "OSV-TEST-1", "summary": "made up", "aliases": [], "affected": affected}]}
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/query"
        server.shutdown()


def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    try:
        import pip_audit  # noqa: F401
    except ImportError:
        missing("pip-audit", "install deploy/locks/test.lock")
    command = [sys.executable, "-m", "deploy.audit", *options]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=150, check=False
    )


def test_s64_a_known_vulnerability_fails_the_check(database: str) -> None:
    """S64, with pip-audit itself and a database that answers."""
    done = run("--", "-s", "osv", "--osv-url", database)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "VULNERABLE: orjson" in done.stdout and "OSV-TEST-1" in done.stdout


def test_without_a_network_it_ends_well_and_says_that_nothing_is_known() -> None:
    closed = "http://127.0.0.1:9"
    done = run("--", "-s", "osv", "--osv-url", closed, NO_PROXY="*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is known" in done.stdout and "versions" in done.stdout
