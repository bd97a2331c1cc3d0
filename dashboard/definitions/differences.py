"""What differs, a line a value: tables such as topic_perms entry by entry. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.language.sentences import gettext


@dataclass(frozen=True, slots=True)
class Difference:
    """One value, as people read it. entry: of a table, whose name is `field`; before is "" where nothing was said."""

    field: str
    entry: str
    before: str
    after: str


def differences(before: Mapping[str, Any], after: Mapping[str, Any], *, is_new: bool) -> Iterator[Difference]:
    """before: None for a value that differs between brokers."""
    for field, value in after.items():
        was = before.get(field)
        if is_new or was is None:
            told = "" if is_new else gettext("differs between brokers")
            yield from (
                Difference(field, entry, told, said) for entry, said in (_entries(value) or {"": _said(value)}).items()
            )
        elif isinstance(value, Mapping):
            old, new = _entries(was), _entries(value)
            for entry in sorted(old.keys() | new.keys()):
                if old.get(entry) != new.get(entry):
                    yield Difference(field, entry, old.get(entry, _said(None)), new.get(entry, _said(None)))
        else:
            yield Difference(field, "", _said(was), _said(value))


def _entries(value: Any) -> dict[str, str]:
    return {str(key): _said(one) for key, one in sorted(value.items())} if isinstance(value, Mapping) else {}


def _said(value: Any) -> str:
    """As the document writes it, without its brackets."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value in ("", [], {}):
        return gettext("not set")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
