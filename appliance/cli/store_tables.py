"""The tables beside a store's log, `config/*.json`, for `gantry store check` and `verify`: read as a start reads them.

A broker that finds a table and its copy gone begins with an empty one, and says no word: its topics are not there then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from appliance.broker.epochs.standing import FILE_NAME as EPOCHS
from appliance.broker.epochs.standing import Standing
from gantrymq.errors import BodyError
from gantrymq.remoting import fastjson
from store.inspect.findings import Findings, Level

TOPICS = "topics.json"
WITH_TOPICS = {"subscriptionGroup.json", "consumerOffset.json"}  # a broker writes these, and then topics as well


def _with(member: str) -> Callable[[Mapping[str, Any]], object]:
    """What reads a table whose entries stand in this member."""

    def read(document: Mapping[str, Any]) -> object:
        if not isinstance(document[member], dict):
            raise TypeError(f"{member} is not an object")
        return document[member]

    return read


READERS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    TOPICS: _with("topicConfigTable"),
    "subscriptionGroup.json": _with("subscriptionGroupTable"),
    "consumerOffset.json": _with("offsetTable"),
    "delayOffset.json": _with("offsetTable"),
    "consumerFilter.json": _with("filterDataByTopic"),
    EPOCHS: Standing.from_dict,
}


def check_tables(root: Path, findings: Findings, *, has_queues: bool) -> None:
    """Add what is wrong with the tables. has_queues: there are messages, so there were topics."""
    folder = root / "config"
    if not folder.is_dir():
        return
    names = {
        path.name.removesuffix(".bak") for path in folder.iterdir() if path.name.removesuffix(".bak").endswith(".json")
    }
    for name in sorted(names):
        _check_table(folder / name, findings)
    if has_queues and TOPICS not in names and names & WITH_TOPICS:
        text = "is missing, and so is its copy: the next start begins without topics, though there are messages"
        findings.add(Level.ERROR, "table_missing", folder / TOPICS, -1, text)


def _check_table(path: Path, findings: Findings) -> None:
    """A table that can't be used is read from its copy; without one, or with a damaged one, the start is refused."""
    copy = path.with_name(f"{path.name}.bak")
    fault, fault_of_copy = _fault(path), _fault(copy)
    if fault and fault_of_copy:
        findings.add(Level.ERROR, "table_damaged", path, -1, f"{fault}, and {copy.name} {fault_of_copy}")
    elif fault:
        findings.add(Level.WARNING, "table_damaged", path, -1, f"{fault}: the next start reads {copy.name}")
    elif fault_of_copy and copy.exists():
        findings.add(Level.WARNING, "table_copy_damaged", copy, -1, f"{fault_of_copy}: the next change writes it again")


def _fault(path: Path) -> str:
    """Say why the file is of no use; "" when it is."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return "is missing"
    except OSError as exc:
        return f"can't be read: {exc.strerror}"
    if not text.strip():
        return "is empty"
    try:
        document = fastjson.loads(text)
        if not isinstance(document, dict):
            return "is damaged: it is not a JSON object"
        READERS.get(path.name.removesuffix(".bak"), len)(document)
    except (BodyError, AttributeError, LookupError, TypeError, ValueError) as exc:
        return f"is damaged: {exc or type(exc).__name__}"
    return ""
