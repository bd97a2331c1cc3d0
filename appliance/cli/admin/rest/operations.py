"""REST's operations, as a verb's options: operations.json is the dashboard's OpenAPI document in short, and a test
compares both. What a field is called in a command line, if not as in REST, stands here.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from appliance.cli.admin.options import not_negative, positive
from appliance.cli.admin.rest.calls import Call
from appliance.cli.admin.rest.fields import Field, text_of
from appliance.cli.admin.rest.values import choice, integer, number, seconds

FILE = Path(__file__).with_name("operations.json")
NEVER = {"dry_run"}  # --dry-run is of every verb

# Field of REST: its option, and the one that says null, no, or the empty list.
OPTIONS = {
    "channel_ids": "--channel --all-channels", "clear": "--clear --clear-at-threshold",
    "clear_s": "--clear-for", "ends_at": "--until", "for_s": "--for", "interval_minutes": "--every",
    "include_resent": "--include-resent --not-resent", "is_on": "--on --off", "life_days": "--days",
    "only_open": "--open --all", "pattern": "--about", "prefixes": "--names --all-names", "q": "--find",
    "reports": "--report", "retention_messages": "--keep-messages", "retention_ms": "--keep-ms",
    "rule_id": "--rule --every-rule", "seconds": "--seconds --no-promise", "settings": "--set", "since": "--from",
    "topics": "--topic", "until": "--to",
}  # fmt: skip
AGO = "or 2h, which is that long ago"
HINTS = {"for_s": "30s, 5min", "clear_s": "30s, 5min", "settings": "secrets take --ask",
         "ends_at": "or 2h, from now", "at": AGO, "since": AGO, "until": AGO}  # fmt: skip


@functools.cache
def operations() -> dict[str, Any]:
    """By the operation's id."""
    found: dict[str, Any] = orjson.loads(FILE.read_bytes())
    return found


def verb(
    operation: str,
    places: str = "",
    *,
    options: dict[str, str] | None = None,
    without: str = "",
    needs: str = "",
    keeps: bool = False,
    before: tuple[str, str] | None = None,
    columns: str = "",
    summary: str = "",
    **more: Any,
) -> Call:
    """The verb that makes a call. places: what is given without an option, in this order: names in capitals of what
    stands in the path, then fields. options: as OPTIONS, where this verb has other ones. without: fields that it does
    not set. needs: those that must be given though REST does without. keeps: what is not given stays as it is.
    columns: of its table. more: as a Call has it.
    """
    told = operations()[operation]
    positions = [word for word in places.split() if not word.isupper()]
    names = OPTIONS | (options or {})
    left_out = NEVER | set(without.split())
    needed = set() if keeps else {*told.get("needed", ()), *needs.split()}
    fields, query = (
        [
            _field(key, rule, names, is_place=key in positions, is_needed=key in needed, keeps=keeps)
            for key, rule in told.get(part, {}).items()
            if key not in left_out
        ]
        for part in ("body", "query")
    )
    fields.sort(key=lambda field: positions.index(field.key) if field.key in positions else len(positions))
    return Call(
        summary or told["summary"][0].lower() + told["summary"][1:] + ("; what is not given stays" if keeps else ""),
        told["method"], told["path"], () if "fixed" in more else tuple(fields), tuple(query),
        before=before or (_standing(told["path"]) if keeps or told["method"] == "DELETE" else None),
        rows=told.get("rows") if columns else None, columns=tuple(columns.split()),
        names=tuple(word for word in places.split() if word.isupper()), **more,
    )  # fmt: skip


def _standing(path: str) -> tuple[str, str] | None:
    """Where REST shows what stands at a path: there, or in the list above it; and the key of that list."""
    reads = {told["path"]: told.get("rows", "") for told in operations().values() if told["method"] == "GET"}
    above, _, last = path.rpartition("/")
    if path in reads:
        return path, ""
    return (above, reads[above]) if last.startswith("{") and above in reads else None


def _field(
    key: str, rule: Mapping[str, Any], names: Mapping[str, str], *, is_place: bool, is_needed: bool, keeps: bool
) -> Field:
    name, _, nothing = names.get(key, f"--{key.replace('_', '-')}").partition(" ")
    kind: Any = {"boolean": "switch", "array": "many", "object": "pairs"}.get(rule["type"], "value")
    value = rule["items"] if kind == "many" else rule
    kind = "secret" if rule.get("format") == "password" else kind
    told = [
        rule.get("description", ""),
        ", ".join(map(str, value.get("enum", ()))),
        HINTS.get(key, ""),
        f"default: {text_of(rule['default'])}" if rule.get("default") and kind == "value" and not keeps else "",
        "repeatable" if kind in ("many", "pairs") and not is_place else "",
    ]
    return Field(
        key, key.removesuffix("s").upper() if is_place else name, "; ".join(filter(None, told)),
        _reader(key, value), kind, "" if is_place else nothing, is_needed,
    )  # fmt: skip


def _reader(key: str, rule: Mapping[str, Any]) -> Callable[[str], Any]:
    """What reads a value from a word."""
    if "enum" in rule:
        return choice(*rule["enum"])
    if rule.get("format") == "date-time":
        return functools.partial(_moment, is_ahead=key.endswith("_at"))
    if rule["type"] == "number":
        return seconds if key.endswith("_s") else number
    if rule["type"] == "integer":
        low = rule.get("minimum", 0)
        return positive if low >= 1 else not_negative if low == 0 else integer
    return str


def _moment(text: str, *, is_ahead: bool) -> str:
    """A moment, or how long from now or ago, as REST takes it."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        try:
            away = timedelta(seconds=seconds(text))
            at = datetime.now(UTC) + (away if is_ahead else -away)
        except argparse.ArgumentTypeError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a time: use 2h ({'from now' if is_ahead else 'ago'}), or 2026-11-21T10:00"
            ) from None
    return at.astimezone().isoformat(timespec="seconds") if at.tzinfo is None else at.isoformat()
