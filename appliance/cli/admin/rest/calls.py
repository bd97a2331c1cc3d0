"""A verb of `gantry admin` that is one call of REST: the body that follows from its options, and the way back from a
call to the words.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.output import when
from appliance.cli.admin.rest.client import Rest, open_rest
from appliance.cli.admin.rest.fields import HIDDEN, Field, ask_secret, setting, text_of
from appliance.cli.tables import Cell, facts, table
from gantrymq.errors import ConfigError

ID = re.compile(r"{(\w+)}")

Body = dict[str, Any]


def lines_of(answer: Any, rows: str | None, columns: Sequence[str]) -> list[str]:
    """A table where the answer holds a list under the key `rows`; else its facts, and lists below them."""
    items = answer.get(rows) if rows else None
    if items is not None:
        lines = table([name.replace("_", " ") for name in columns], [[cell(item.get(name)) for name in columns]
                                                                    for item in items])  # fmt: skip
        following = answer.get("next")
        return [*lines, f"{len(items)} of {answer['total']}; the next: --cursor {following}"] if following else lines
    lists = {key: value for key, value in answer.items() if value and _is_rows(value)}
    lines = facts([(key.replace("_", " "), cell(value)) for key, value in answer.items() if key not in lists])
    for key, value in lists.items():
        names = list(value[0])
        lines += ["", f"{key.replace('_', ' ')}:", *table(names, [[cell(item.get(name)) for name in names]
                                                                  for item in value])]  # fmt: skip
    return lines


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def cell(value: Any) -> Cell:
    """A value as a table shows it: moments in this machine's zone, lists and objects in one line."""
    if isinstance(value, list):
        return ", ".join(str(cell(item)) for item in value) or None
    if isinstance(value, dict):
        return ", ".join(f"{name}={cell(item)}" for name, item in value.items() if item is not None) or None
    if isinstance(value, str):
        return moment(value) or value or None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | float) else None


def moment(text: str) -> str | None:
    """ "2026-11-21T07:30:00Z" as this machine's clocks show it; None for other texts."""
    if not (len(text) >= 19 and text[4:5] == "-" and text[10:11] == "T"):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when(round(at.timestamp() * 1000)) if at.tzinfo else None


@dataclass(frozen=True)
class Call:
    """One verb. path: below /api/v1, "/alerts/rules/{rule_id}"; what stands in braces is given first.

    before: where what is changed stands, and the key of its list: fields that are not given stay as they are there; of
    a call without fields it is shown before it is deleted. done: said instead of an answer that is empty. rows,
    columns: the answer's key of a list, and its table. fixed: what the verb itself says in the body. fails: the
    answer's field, and its value, that mean a failure. names: what stands in braces as helps call it.
    """

    summary: str
    method: str
    path: str
    fields: tuple[Field, ...] = ()
    query: tuple[Field, ...] = ()
    before: tuple[str, str] | None = None
    fixed: Mapping[str, Any] | None = None
    fails: tuple[str, str] | None = None
    done: str = ""
    rows: str | None = None
    columns: tuple[str, ...] = ()
    loses: bool = False
    names: tuple[str, ...] = ()

    @property
    def ids(self) -> list[str]:
        return ID.findall(self.path)

    @property
    def command(self) -> Command:
        changes = self.method != "GET"
        return Command(
            self.summary, self.act, self.arguments, self.plan if changes else None, loses=self.loses, opens=open_rest
        )

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        for name, shown in zip(self.ids, self.names or self.ids, strict=True):
            parser.add_argument(f"id_{name}", type=_number if name.endswith("id") and name != "run_id" else str,
                                metavar=shown.removesuffix("_id").upper())  # fmt: skip
        for field in (*self.fields, *self.query):
            field.add(parser)

    # ---- from words to a call

    async def act(self, rest: Rest, arguments: argparse.Namespace, **further: Any) -> Shown:
        """further: more of the body, such as dry_run."""
        body = await self._body(rest, arguments)
        if further:
            body = {**(body or {}), **further}
        answer = await rest.call(self.method, self._path(arguments), body, self._query(arguments))
        if answer is None:
            return Shown({"done": True}, [self.done.format(**self._named(arguments))])
        has_failed = self.fails is not None and answer.get(self.fails[0]) == self.fails[1]
        return Shown(answer, lines_of(answer, self.rows, self.columns), is_failure=has_failed)

    async def plan(self, rest: Rest, arguments: argparse.Namespace) -> Shown:
        """What would be sent; of what is deleted, what it is."""
        before = await self._before(rest, arguments) if self.before else {}
        body = dict(self.fixed) if self.fixed else None
        if self.fields:
            body = self._merged(before, arguments) | {
                field.key: HIDDEN for field in self.fields if field.kind == "secret"
            }
        request = f"{self.method} {self._path(arguments)}"
        facts = lines_of(before, None, ()) if before and body is None else []
        lines = [*facts, f"{self.summary}: {request}" + (f" {json.dumps(body, ensure_ascii=False)}" if body else "")]
        return Shown({"request": request, "body": body, "before": before or None}, lines)

    async def _body(self, rest: Rest, arguments: argparse.Namespace) -> Body | None:
        if not self.fields:
            if self.before:
                await self._before(rest, arguments)  # which says that there is none
            return dict(self.fixed) if self.fixed else None
        body = self._merged(await self._before(rest, arguments) if self.before else {}, arguments)
        for field in self.fields:
            if field.kind == "secret":
                body[field.key] = ask_secret(field.help.partition(";")[0])
            elif field.kind == "pairs":
                body[field.key] = body.get(field.key, {}) | {name: ask_secret(name) for name in arguments.asked}
        return body

    def _merged(self, before: Body, arguments: argparse.Namespace) -> Body:
        """The body without its secrets. Raises ConfigError when a change says nothing."""
        options = [field.name for field in self.fields if field.is_option and field.kind != "secret"]
        said = any(hasattr(arguments, field.key) for field in self.fields)
        said = said or any(getattr(arguments, name, None) for name in ("pairs", "asked"))
        if self.method == "PUT" and options and not said:
            raise ConfigError(f"say what to change: {', '.join(options)}")
        body = {field.key: before[field.key] for field in self.fields if field.key in before}
        for field in self.fields:
            if field.kind == "pairs":
                given = {name: setting(name, text) for name, text in arguments.pairs}
                known = before.get(field.key, {}).items()
                body[field.key] = {name: value for name, value in known if not isinstance(value, bool)} | given
            elif field.kind != "secret" and hasattr(arguments, field.key):
                body[field.key] = getattr(arguments, field.key)
        return body

    async def _before(self, rest: Rest, arguments: argparse.Namespace) -> Body:
        """What is there now. Raises NotThere."""
        assert self.before is not None
        path, rows = self.before
        answer = await rest.call("GET", path.format(**self._named(arguments)))
        if not self.ids or not rows:
            return dict(answer)
        wanted = str(getattr(arguments, f"id_{self.ids[-1]}"))
        items = answer[rows]
        for item in items:
            if str(item.get("id")) == wanted:
                return dict(item)
        known = ", ".join(str(item.get("id")) for item in items[:20]) or "none"
        raise NotThere(f"there is none with the id {wanted}; known: {known}")

    def _named(self, arguments: argparse.Namespace) -> dict[str, str]:
        return {name: str(getattr(arguments, f"id_{name}")) for name in self.ids}

    def _path(self, arguments: argparse.Namespace) -> str:
        return self.path.format(**{name: quote(value, safe="") for name, value in self._named(arguments).items()})

    def _query(self, arguments: argparse.Namespace) -> dict[str, Any]:
        return {
            field.key: text_of(getattr(arguments, field.key)) for field in self.query if hasattr(arguments, field.key)
        }

    # ---- from a call to words

    def words(self, method: str, path: str, body: Mapping[str, Any] | None) -> list[str] | None:
        """The words after the verb that make this call; None when it is another one."""
        pattern = ID.sub("([^/?]+)", self.path)
        found = re.fullmatch(pattern, path) if method == self.method else None
        given = dict(body or {})
        if self.fixed is not None:
            return [*map(unquote, found.groups())] if found is not None and given == self.fixed else None
        if found is None or set(given) - {field.key for field in self.fields}:
            return None
        if any(field.is_needed and field.key not in given for field in self.fields if field.kind != "secret"):
            return None
        ordered = sorted(self.fields, key=lambda field: field.is_option or field.kind == "pairs")
        words = [word for field in ordered if field.key in given for word in field.words(given[field.key])]
        return [*map(unquote, found.groups()), *words]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not an id: that is a number, as the list shows it")
    return int(text)
