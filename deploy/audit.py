"""Compares the locked versions with known vulnerabilities (pip-audit); fails for each one without an exception.

    deploy/audit                 compare; exit code 1 for a vulnerability without a recorded exception
    deploy/audit --record        the same, and write to locks/audit.json that today's versions were compared
    deploy/audit -- OPTIONS      further options of pip-audit, such as another database

If no database can be reached, it says so and succeeds: a check that fails without a network would soon be switched off.
`locks/audit.json` has the date of the last comparison, the number and the hash of the versions (which the locks have),
whether a database answered, and the exceptions: which vulnerability, why it does not matter here, and until when.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from deploy.lock_file import LOCKS, carried, interpreter_built, lock_names, normal, pinned

RECORD = LOCKS / "audit.json"
LIMIT_S = 90.0  # a network that swallows everything must not hold a check up
REQUEST_LIMIT_S = 10


@dataclass
class Judgement:
    """What a look at the database means."""

    looked_up: int = 0  # versions that the database knows
    unknown: list[str] = field(default_factory=list)  # that it did not answer for
    excused: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)  # vulnerabilities without an exception


def judge(report: dict[str, Any], exceptions: Sequence[dict[str, str]], today: date) -> Judgement:
    """pip-audit's report held against the exceptions; one whose time is over excuses nothing."""
    excuses = {
        (normal(item["package"]), item["id"]) for item in exceptions if date.fromisoformat(item["until"]) >= today
    }
    found = Judgement()
    for dependency in report.get("dependencies", ()):
        name = normal(dependency["name"])
        if "skip_reason" in dependency:
            found.unknown.append(name)
            continue
        found.looked_up += 1
        for item in dependency["vulns"]:
            names = {item["id"], *item.get("aliases", ())}
            fixes = ", ".join(item.get("fix_versions", ())) or "none yet"
            line = f"{name} {dependency['version']}: {item['id']} (fixed in: {fixes})"
            is_excused = any((name, known) in excuses for known in names)
            (found.excused if is_excused else found.open).append(line)
    return found


def versions() -> dict[str, str]:
    """Every locked version by name, with what the single file carries."""
    packages = [package for lock in lock_names() for package in pinned(lock)]
    return {package.name: package.version for package in (*packages, *carried())}


def what_is_compared() -> dict[str, object]:
    """All versions as the record has them: their number, and a hash that is another one for any other version."""
    lines = "".join(f"{name}=={version}\n" for name, version in sorted(versions().items()))
    return {"versions": len(versions()), "sha256": hashlib.sha256(lines.encode()).hexdigest()}


def read_record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def look_up(further: Sequence[str]) -> dict[str, Any]:
    """pip-audit's report; an empty one when it could not finish."""
    with tempfile.TemporaryDirectory(prefix="gantry-audit-") as folder:
        command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
        command += ["--require-hashes", "--disable-pip", "--cache-dir", folder, "--timeout", str(REQUEST_LIMIT_S)]
        for lock in lock_names():
            command += ["-r", str(LOCKS / f"{lock}.lock")]
        try:
            done = subprocess.run(
                [*command, *further], capture_output=True, text=True, timeout=LIMIT_S, cwd=folder, check=False
            )
        except subprocess.TimeoutExpired:
            print(f"pip-audit did not end within {LIMIT_S:g} s")
            return {}
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        print(f"pip-audit did not answer: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
        return {}
    return report


def tell(found: Judgement, record: dict[str, Any], today: date) -> int:
    """Print what was found; the exit code."""
    names = ", ".join(f"{item.name} {item.version}" for item in sorted(carried()))
    print(f"In the single file, and in no database of Python packages: {names}. See what their makers say.")
    built = interpreter_built()
    print(f"Its interpreter was built on {built}, {(today - built).days} days ago: fixes made since are not in it.")
    if not found.looked_up:
        answered = "a database answered then" if record.get("looked_up") else "no database answered then either"
        print("No database of vulnerabilities was reached: nothing is known of the locked versions.")
        print(f"Recorded on {record.get('recorded', '?')}: {record.get('versions', 0)} versions; {answered}.")
        return 0
    for line in found.excused:
        print(f"excused: {line}")
    for line in found.open:
        print(f"VULNERABLE: {line}")
    if found.unknown:
        print(f"not in the database: {', '.join(sorted(found.unknown))}")
    print(f"{found.looked_up} versions looked up, {len(found.open)} known vulnerabilities to answer for.")
    return 1 if found.open else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="deploy/audit", description="Look up the locked versions.")
    parser.add_argument("--record", action="store_true", help="note today's versions in locks/audit.json")
    parser.add_argument("further", nargs="*", metavar="-- OPTIONS", help="options of pip-audit")
    given = parser.parse_args(arguments)
    record = read_record() if RECORD.exists() else {"exceptions": []}
    today = datetime.now(UTC).date()
    found = judge(look_up(given.further), record["exceptions"], today)
    if given.record:
        record |= {
            "recorded": today.isoformat(),
            "looked_up": found.looked_up > 0 and not found.unknown,
            **what_is_compared(),
        }
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return tell(found, record, today)


if __name__ == "__main__":
    sys.exit(main())
