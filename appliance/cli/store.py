"""Inspect a broker's store folder: this broker's or Apache RocketMQ's, stopped or running.

  gantry store check  FOLDER                          a quick look: files, ends, checkpoint, abort marker, lock
  gantry store verify FOLDER                          every record, queue unit and index entry
  gantry store dump   FOLDER records --topic T        contents, readable or as JSON lines
  gantry store repair FOLDER [--yes]                  what a repair would do; with --yes, do it

check, verify and dump only read: they take no lock and change no file. FOLDER is storePathRootDir; sizes of files are
found from the files. Exit codes: 0 sound, 1 something to check (the next start may repair it), 2 damaged or
unreadable. A repair keeps what it cuts or replaces in FOLDER.cut-TIME, with a note of the offsets.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import orjson

from appliance.cli.store_output import print_check, print_config, print_repair, print_rows, print_verify
from appliance.cli.store_tables import check_tables
from appliance.settings.loader import read_properties
from gantrymq.errors import ConfigError
from store.base.config import split_paths
from store.base.errors import StoreError
from store.inspect.check import check_store
from store.inspect.dump import Row, Selection, dump_checkpoint, dump_index, dump_records, dump_units
from store.inspect.findings import Finding, Findings, Level
from store.inspect.folder import StoreFolder
from store.inspect.repair import RepairOptions, plan_repair, repair_store
from store.inspect.verify import verify_store

EXIT_DAMAGED = int(Level.ERROR)
CONTENTS = ("records", "units", "index", "checkpoint", "config")
STORE_PARTS = ("commitlog", "consumequeue", "checkpoint")
PROGRESS_AFTER_S = 2.0
SLOTS_KEY, ENTRIES_KEY = "maxHashSlotNum", "maxIndexNum"
LAYOUT_KEYS = ("storePathCommitLog", "readOnlyCommitLogStorePaths", SLOTS_KEY, ENTRIES_KEY)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="VERB")
    _action(actions, "check", "a quick look at the store's health")
    _action(actions, "verify", "check every record, queue unit and index entry")
    dump = _action(actions, "dump", "print contents")
    dump.add_argument("what", nargs="?", choices=CONTENTS, default="records", help="what to print (default: records)")
    dump.add_argument("--from", dest="begin", type=int, metavar="OFFSET", help="first offset (units: queue offset)")
    dump.add_argument("--to", dest="end", type=int, metavar="OFFSET", help="offset to stop before")
    dump.add_argument("--topic", metavar="TOPIC", help="only this topic")
    dump.add_argument("--queue", type=int, metavar="ID", help="only this queue id")
    dump.add_argument("--key", help="only messages with this key or unique key; by index when --topic is given")
    dump.add_argument("--limit", type=int, metavar="N", help="stop after N rows")
    dump.add_argument("--body", action="store_true", help="print bodies too, as stored")
    repair = _action(actions, "repair", "cut a torn or stale tail, rebuild queues and index where they disagree")
    repair.add_argument("--yes", action="store_true", help="do it; without, only say what would be done")
    repair.add_argument(
        "--cut-at-damage",
        action="store_true",
        help="cut where damage begins, though whole records follow: they go, too",
    )
    repair.add_argument(
        "--skip-lost",
        action="store_true",
        help="go on without commit log files that are missing, empty or damaged to their end; what follows them stays",
    )
    repair.add_argument(
        "--rebuild", choices=("queues", "index", "all"), default="", help="rebuild these even if they are intact"
    )


def run(arguments: argparse.Namespace) -> int:
    actions = {"check": _check, "verify": _verify, "dump": _dump, "repair": _repair}
    try:
        return actions[arguments.action](arguments)
    except BrokenPipeError:  # `gantry store dump … | head`
        sys.stderr.close()
        return 0
    except (StoreError, ConfigError, OSError) as exc:
        text = f"{exc.filename}: {exc.strerror}" if isinstance(exc, OSError) and exc.filename else str(exc)
        if arguments.json:
            _print_json({"error": text})
        print(f"gantry store {arguments.action}: {text}", file=sys.stderr)
        return EXIT_DAMAGED


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="store folder (storePathRootDir)")
    parser.add_argument("--json", action="store_true", help="print JSON: one document, for dump a line a row")
    parser.add_argument(
        "--commit-log", type=split_paths, action="extend", default=[], metavar="DIRS",
        help="where the commit log is, when not in FOLDER/commitlog: one folder, or several with ','; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--config", type=Path, metavar="FILE",
        help="the broker's properties: storePathCommitLog, readOnlyCommitLogStorePaths, sizes of the index are its",
    )  # fmt: skip
    parser.add_argument(
        "--index-slots", type=int, metavar="N", help="maxHashSlotNum, if it can't be read from the file"
    )
    parser.add_argument("--index-entries", type=int, metavar="N", help="maxIndexNum, likewise")
    return parser


def _open(arguments: argparse.Namespace, is_ours: bool = False) -> StoreFolder:
    folder, inner = arguments.folder, arguments.folder / "store"
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}: give a broker's store, such as data/brokers/broker-a/store")
    if any((inner / part).exists() for part in STORE_PARTS) and not any(
        (folder / part).exists() for part in STORE_PARTS
    ):
        raise ConfigError(f"{folder} is not a store, but {inner} is one")
    commit_logs, slots, entries = arguments.commit_log, arguments.index_slots, arguments.index_entries
    if arguments.config is not None:
        try:
            text = arguments.config.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
            raise ConfigError(f"--config {arguments.config}: {reason}") from exc
        values = {key: value for key, value in read_properties(text).items() if key in LAYOUT_KEYS and value}
        commit_logs = commit_logs or [
            path for key in LAYOUT_KEYS[:2] if key in values for path in split_paths(values[key])
        ]
        try:
            slots = slots or (int(values[SLOTS_KEY]) if SLOTS_KEY in values else None)
            entries = entries or (int(values[ENTRIES_KEY]) if ENTRIES_KEY in values else None)
        except ValueError as exc:
            raise ConfigError(f"{arguments.config}: {SLOTS_KEY} and {ENTRIES_KEY} are whole numbers: {exc}") from exc
        if commit_logs and "storePathCommitLog" not in values and not arguments.commit_log:
            commit_logs.insert(0, arguments.folder / "commitlog")
    for path in commit_logs:
        if not path.is_dir():
            print(f"gantry store: {path} is not a folder: its part of the commit log is missing", file=sys.stderr)
    return StoreFolder(
        arguments.folder, commit_logs=commit_logs, index_slots=slots, index_entries=entries, is_ours=is_ours
    )


def _check(arguments: argparse.Namespace) -> int:
    with _open(arguments) as folder:
        result = check_store(folder)
        check_tables(folder.root, result.findings, has_queues=bool(folder.queues))
    if arguments.json:
        facts = {fact.name: fact.text for fact in result.facts}
        _print_json({"facts": facts, **_findings_json(result.findings)})
    else:
        print_check(result)
    return int(result.findings.worst)


def _verify(arguments: argparse.Namespace) -> int:
    findings = Findings(None if arguments.json else _print_finding)
    with _open(arguments) as folder:
        result = verify_store(folder, findings, _Progress())
        check_tables(folder.root, findings, has_queues=bool(folder.queues))
    if arguments.json:
        counts = {
            "records": result.records,
            "units": result.units,
            "index_entries": result.index_entries,
            "log_end": result.log_end,
            "log_ends_with": result.log_break.kind.value,
        }
        _print_json({**counts, **_findings_json(findings)})
    else:
        print_verify(result)
    return int(findings.worst)


def _dump(arguments: argparse.Namespace) -> int:
    selection = Selection(arguments.begin, arguments.end, arguments.topic, arguments.queue, arguments.key)
    if arguments.what == "config":
        return print_config(arguments.folder / "config", as_json=arguments.json)
    if arguments.what == "index" and selection.key is not None and selection.topic is None:
        raise ConfigError("the index knows hashes of topic and key together: give --topic with --key")
    with _open(arguments) as folder:
        rows: Iterable[Row]
        if arguments.what == "records":
            rows = dump_records(folder, selection, with_body=arguments.body)
        elif arguments.what == "units":
            rows = dump_units(folder, selection)
        elif arguments.what == "index":
            if folder.index_files and folder.index_shape is None:
                raise ConfigError("the number of slots can't be read from the index files: give --index-slots")
            rows = dump_index(folder, selection)
        else:
            rows = [dump_checkpoint(folder)]
        print_rows(rows, as_json=arguments.json, limit=arguments.limit)
    return 0


def _repair(arguments: argparse.Namespace) -> int:
    """Exit code after --yes: as verify's, of the repaired store. Without: 0 nothing to do, 1 a plan, 2 refused."""
    options = RepairOptions(
        cut_at_damage=arguments.cut_at_damage,
        skip_lost=arguments.skip_lost,
        all_queues=arguments.rebuild in ("queues", "all"),
        index=arguments.rebuild in ("index", "all"),
    )
    if not arguments.yes:
        with _open(arguments) as folder:
            plan = plan_repair(folder, verify_store(folder, progress=_Progress()), options)
        if arguments.json:
            _print_json({"would": plan.lines(), "refusal": plan.refusal or None})
        else:
            print("\n".join(plan.lines()))
            if not plan.is_empty and not plan.refusal:
                print("nothing was changed; --yes does it")
        return EXIT_DAMAGED if plan.refusal else int(not plan.is_empty)
    plan, kept, result = repair_store(arguments.folder, partial(_open, arguments), options, _Progress())
    if arguments.json:
        kept_in = str(kept.path) if kept.cuts else None
        _print_json({"did": plan.lines(), "kept": kept_in, "cuts": kept.cuts, **_findings_json(result.findings)})
    else:
        print_repair(plan, kept, result)
    return int(result.findings.worst)


def _findings_json(findings: Findings) -> dict[str, object]:
    return {
        "worst": findings.worst.name.lower(),
        "findings": [finding.as_json() for finding in findings],
        "counts": dict(findings.counts),
    }


def _print_json(document: object) -> None:
    print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _print_finding(finding: Finding) -> None:
    print(finding, flush=True)


class _Progress:
    """A line on stderr now and then, once it takes long."""

    def __init__(self) -> None:
        self._started = self._said = time.monotonic()

    def __call__(self, offset: int, end: int) -> None:
        now = time.monotonic()
        if now - self._said >= PROGRESS_AFTER_S:
            self._said = now
            seconds = now - self._started
            print(f"  … offset {offset:,} of at most {end:,}, {seconds:.0f} s", file=sys.stderr, flush=True)
