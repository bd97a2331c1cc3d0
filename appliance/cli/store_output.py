"""The output of `gantry store` for people: tables, findings, rows, and the config files as they are on disk."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from gantrymq.errors import BodyError
from gantrymq.remoting import fastjson
from store.base.cut_folder import CutFolder
from store.inspect.check import CheckResult
from store.inspect.findings import Findings, Level
from store.inspect.repair import RepairPlan
from store.inspect.verify import VerifyResult

QUICKLY = "nothing wrong in a quick look, which reads ends and tables only; `gantry store verify` reads every message"
VERDICTS = {
    Level.NOTE: "sound",
    Level.WARNING: "usable: the warnings say what the next start repairs and what needs a check by hand",
    Level.ERROR: "DAMAGED",
}


def print_check(result: CheckResult) -> None:
    for fact in result.facts:
        print(f"{fact.name:<15} {fact.text}")
    for finding in result.findings:
        print(finding)
    _print_verdict(result.findings, QUICKLY)


def print_verify(result: VerifyResult) -> None:
    """Print the result; the findings themselves have been printed already."""
    print(
        f"{result.records:,} records, {result.units:,} queue units, {result.index_entries:,} index entries; "
        f"the log ends at {result.log_end:,}"
    )
    _print_verdict(result.findings)


def print_repair(plan: RepairPlan, kept: CutFolder, result: VerifyResult) -> None:
    print("\n".join(plan.lines()))
    if kept.cuts:
        print(f"kept in {kept.path}:")
        for cut in kept.cuts:
            print(f"  {cut['kept']}  from offset {cut['offset']}: {cut['reason']}")
    for finding in result.findings:
        print(finding)
    print_verify(result)


def print_rows(rows: Iterable[dict[str, Any]], *, as_json: bool, limit: int | None) -> None:
    """Print each row as a line of JSON, or as `name=value` pairs with readable times."""
    for row in itertools.islice(rows, limit):
        if as_json:
            sys.stdout.write(orjson.dumps(row).decode() + "\n")
        else:
            sys.stdout.write("  ".join(f"{name}={_readable(name, value)}" for name, value in row.items()) + "\n")
    sys.stdout.flush()


def print_config(folder: Path, *, as_json: bool) -> int:
    """Print the tables of config/*.json, read as a broker reads them. Exit code 2 when one can't be read."""
    failed = 0
    for path in sorted(folder.glob("*.json")):
        try:
            table = fastjson.loads(path.read_bytes())
        except (BodyError, OSError) as exc:
            failed = 2
            print(f"{path}: {exc}", file=sys.stderr)
            continue
        if as_json:
            print(orjson.dumps({"file": path.name, "content": table}, default=str).decode())
        else:
            option = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
            print(f"-- {path.name}\n{orjson.dumps(table, option=option, default=str).decode()}")
    return failed


def _print_verdict(findings: Findings, sound: str = VERDICTS[Level.NOTE]) -> None:
    for code, count in findings.withheld().items():
        print(f"{'':<8} … and {count:,} more of {code}")
    print(VERDICTS[findings.worst] if findings.worst > Level.NOTE else sound)


def _readable(name: str, value: Any) -> Any:
    if name.endswith("Timestamp") and isinstance(value, int) and 0 < value < 1 << 47:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
    if name == "properties":
        return "{" + ", ".join(f"{key}: {text}" for key, text in value.items()) + "}"
    if isinstance(value, str) and not value.isprintable():
        return repr(value)
    return value
