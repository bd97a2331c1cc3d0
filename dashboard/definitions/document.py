"""The document as text: YAML out; YAML, and so JSON, or a table of topics in, as untrusted input: bounded, no tags, no
aliases.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from django.utils.translation import gettext
from pydantic import ValidationError

from dashboard.definitions.problems import Place, problems_of, short
from dashboard.definitions.schemas import TEXT_BYTES_MAX, Definitions
from gantrymq.errors import GantryError

NESTING_MAX = 8
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
HEAD = "# Definitions of a GantryMQ cluster. Nothing here is secret: accounts and channels keep theirs.\n"


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Its scalars are what they look like, or what their tags say, or refused with their line."""


def _constructor(kind: str) -> Callable[[Any, Any], Any]:
    construct = getattr(_SafeLoader, f"construct_yaml_{kind}")

    def constructed(loader: Any, node: Any) -> Any:
        if kind != "timestamp" and ":" in node.value:
            return node.value  # as in YAML 1.2: as a number 10:30 would be 630, and a long one would take minutes
        try:
            return construct(loader, node)
        except (ValueError, LookupError, AttributeError) as exc:  # 2024-13-45, !!bool 3, !!timestamp 3
            why = gettext("%(value)s is no value of its kind") % {"value": short(str(node.value))}
            raise yaml.constructor.ConstructorError(None, None, why, node.start_mark) from exc

    return constructed


for _kind in ("int", "float", "bool", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _constructor(_kind))


class DocumentRefused(GantryError):
    """The text is no document of definitions. problems: a sentence each, which says where."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def as_text(document: Definitions) -> str:
    """The document as YAML; sections and fields that it does not have are absent."""
    values = document.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return HEAD + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120)


def read(text: str) -> Definitions:
    """Raises DocumentRefused."""
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise DocumentRefused(gettext("The document is larger than %(most)s bytes.") % {"most": TEXT_BYTES_MAX})
    try:
        values, line_of = _table(text.removeprefix("\ufeff")) or _values(text)  # as spreadsheets begin a file
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        told = {"why": getattr(exc, "problem", None) or str(exc), "line": mark.line + 1 if mark else 1}
        raise DocumentRefused(gettext("This is not YAML, line %(line)s: %(why)s") % told) from exc
    if not isinstance(values, dict):
        raise DocumentRefused(gettext("The document is a mapping of sections: topics, groups, accounts and others."))
    try:
        document = Definitions.model_validate(values)
    except ValidationError as exc:
        raise DocumentRefused(*problems_of(exc, values, line_of)) from exc
    _refuse_doubles(document)
    return document


def items_of(document: Definitions) -> dict[str, dict[str, dict[str, Any]]]:
    """Section to name to the fields that are said. A section that is absent is not in it."""
    values = document.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return {section: _by_name(items) for section, items in values.items() if section != "version"}


def name_of(item: dict[str, Any]) -> str:
    return str(item.get("name") or item.get("access_key"))


def _by_name(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name_of(item): item for item in items}


def _refuse_tricks(text: str) -> None:
    """A few lines of aliases can be gigabytes, and deep nesting costs a stack. Raises DocumentRefused, YAMLError."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise DocumentRefused(gettext("Aliases (*name) are not taken: write it out."))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > NESTING_MAX:
            raise DocumentRefused(gettext("The document is nested too deeply."))


def _values(text: str) -> tuple[object, Callable[[Place], int]]:
    """Plain values: the safe loader makes nothing else; and the line of each. Raises DocumentRefused, YAMLError."""
    _refuse_tricks(text)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        return None if root is None else loader.construct_document(root), lambda place: _line(root, place)
    finally:
        loader.dispose()


def _line(node: Any, place: Place) -> int:
    """Where a value begins, or what is there of the way to it."""
    line = 0
    for part in place:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line
        elif isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in reversed(node.value) if key.value == str(part)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
    return line + 1


def _table(text: str) -> tuple[object, Callable[[Place], int]] | None:
    """The topics of a table, whose first line names the fields, `name` first, and their lines; None when it is none.

    No document in YAML begins so. An empty cell says nothing. Raises DocumentRefused.
    """
    head = text.partition("\n")[0]
    if not head.lstrip('"').startswith("name"):
        return None
    # A spreadsheet pastes tabs, and writes semicolons where the comma is in numbers.
    separator = next((one for one in "\t;" if one in head), ",")
    lines = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        columns = [cell.strip() for cell in next(lines)]
        if columns[0] != "name":
            return None
        rows = _rows(lines, columns)
    except csv.Error as exc:
        told = gettext("This is no table, line %(line)s: %(why)s")
        raise DocumentRefused(told % {"line": lines.line_num, "why": exc}) from exc
    numbers = list(rows)
    return {"topics": list(rows.values())}, lambda place: numbers[int(place[1])] if len(place) > 1 else 1


def _rows(lines: Any, columns: list[str]) -> Mapping[int, dict[str, Any]]:
    """By their lines. lines: a csv.reader behind the line of the columns. Raises DocumentRefused, csv.Error."""
    found: dict[int, dict[str, Any]] = {}
    for cells in lines:
        if len(cells) > len(columns):
            told = gettext("Line %(line)s has more cells than there are columns.")
            raise DocumentRefused(told % {"line": lines.line_num})
        said = {column: cell.strip() for column, cell in zip(columns, cells, strict=False) if cell.strip()}
        if said:
            row = {column: cell if column == "name" else _cell(cell) for column, cell in said.items()}
            found[lines.line_num] = row
    return found


def _cell(text: str) -> str | int | bool:
    if text.isascii() and text.isdecimal() and len(text) < 20:  # what is longer, no field takes
        return int(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _refuse_doubles(document: Definitions) -> None:
    """Two items of one name would undo each other. Raises DocumentRefused."""
    for section, items in document.model_dump(mode="json", exclude_unset=True, exclude_none=True).items():
        if section != "version" and len(_by_name(items)) < len(items):
            [(double, _)] = Counter(map(name_of, items)).most_common(1)
            told = gettext("%(section)s: %(name)s is there twice.")
            raise DocumentRefused(told % {"section": section, "name": double})
