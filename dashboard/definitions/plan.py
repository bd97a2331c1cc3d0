"""What an import would change: pure. Nothing is deleted unless that is asked for, and then only in sections that the
document has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dashboard.definitions.losses import Losses
from dashboard.definitions.schemas import CHANGES_MAX, Section, What
from dashboard.language.sentences import gettext, in_english


@dataclass(frozen=True, slots=True)
class Difference:
    """One value, as people read it. entry: of a table, whose name is `field`; before is "" where nothing was said."""

    field: str
    entry: str
    before: str
    after: str


def differences(before: Mapping[str, Any], after: Mapping[str, Any], *, is_new: bool) -> Iterator[Difference]:
    """before: None for a value that differs between brokers."""
    for name, value in after.items():
        was = before.get(name)
        if is_new or was is None:
            told = "" if is_new else gettext("differs between brokers")
            yield from (
                Difference(name, entry, told, said)
                for entry, said in (_entries(value) or {"": _text_of(value)}).items()
            )
        elif isinstance(value, Mapping):
            old, new = _entries(was), _entries(value)
            for entry in sorted(old.keys() | new.keys()):
                if old.get(entry) != new.get(entry):
                    yield Difference(name, entry, old.get(entry, _text_of(None)), new.get(entry, _text_of(None)))
        else:
            yield Difference(name, "", _text_of(was), _text_of(value))


def _entries(value: Any) -> dict[str, str]:
    return {str(key): _text_of(one) for key, one in sorted(value.items())} if isinstance(value, Mapping) else {}


def _text_of(value: Any) -> str:
    """As the document writes it, without its brackets."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value in ("", [], {}):
        return gettext("not set")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


Items = Mapping[str, Mapping[str, Any]]  # name to fields
IDS = ("name", "access_key")
ORDER: tuple[Section, ...] = ("topics", "groups", "accounts", "alert_channels", "alert_rules")  # rules name channels


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """One change. before, after: the fields that differ; of what is created all that is said, of what is deleted what
    it was. refusal: why it can't be done, "" when it can. losses: of an account that loses rights."""

    section: Section
    name: str
    what: What
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""
    losses: Losses | None = None

    @property
    def differences(self) -> list[Difference]:
        """A line a value."""
        return list(differences(self.before, self.after, is_new=self.what == "create"))


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes, in the order in which they are made. left_alone: what is there and not named."""

    changes: tuple[DefinitionChange, ...]
    left_alone: tuple[tuple[Section, str], ...]

    @property
    def now(self) -> tuple[DefinitionChange, ...]:
        """Those of one import."""
        return self.changes[:CHANGES_MAX]

    @property
    def left(self) -> int:
        return len(self.changes) - len(self.now)

    @property
    def deleted(self) -> int:
        return sum(change.what == "delete" for change in self.changes)

    @property
    def digest(self) -> str:
        """Differs when anything else would change, whatever the language."""
        values = [
            [one.section, one.name, one.what, one.before, one.after, in_english(one.refusal)] for one in self.changes
        ]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def plan_of(there: Mapping[str, Items], wanted: Mapping[str, Items], *, delete: bool) -> Plan:
    """there: every section that the document has, as the cluster has it, each item with all its fields."""
    made: list[DefinitionChange] = []
    gone: list[DefinitionChange] = []
    left: list[tuple[Section, str]] = []
    for section in ORDER:
        if section not in wanted:
            continue
        known, named = there[section], wanted[section]
        for name, item in named.items():
            change = _change(section, name, known.get(name), item)
            if change is not None:
                made.append(change)
        for name in known.keys() - named.keys():
            if delete:
                gone.append(DefinitionChange(section, name, "delete", before=_said(known[name])))
            else:
                left.append((section, name))
    gone.sort(key=lambda one: (-ORDER.index(one.section), one.name))
    return Plan((*made, *gone), tuple(sorted(left)))


def refused(plan: Plan, refusals: Mapping[tuple[str, str], str]) -> Plan:
    """The plan with why some of it can't be done, by section and name."""
    changes = (replace(one, refusal=refusals.get((one.section, one.name), "")) for one in plan.changes)
    return replace(plan, changes=tuple(changes))


def with_losses(plan: Plan, losses: Mapping[str, Losses | None]) -> Plan:
    """The plan with what accounts lose, by access key."""
    changes = (replace(one, losses=losses.get(one.name)) if one.section == "accounts" else one for one in plan.changes)
    return replace(plan, changes=tuple(changes))


def _change(
    section: Section, name: str, known: Mapping[str, Any] | None, item: Mapping[str, Any]
) -> DefinitionChange | None:
    said = _said(item)
    if known is None:
        return DefinitionChange(section, name, "create", after=said)
    after = {key: value for key, value in said.items() if key not in known or known[key] != value}
    if not after:
        return None
    return DefinitionChange(section, name, "change", before={key: known.get(key) for key in after}, after=after)


def _said(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in IDS}
