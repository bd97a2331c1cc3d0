"""`gantry admin definitions`: a cluster's topics, groups, accounts and alerts as one YAML file, for a repository."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.rest.calls import cell
from appliance.cli.admin.rest.client import Rest, open_rest
from appliance.cli.tables import facts, table
from gantrymq.byte_size import readable
from gantrymq.errors import ConfigError

PATH = "/definitions"
FILE_BYTES_MAX = 1 << 20


async def export(rest: Rest, arguments: argparse.Namespace) -> Shown:
    answer = await rest.call("GET", PATH)
    return Shown(answer, answer["text"].splitlines())


async def diff(rest: Rest, arguments: argparse.Namespace) -> Shown:
    """What an import would change; a failure when that is anything, as diff has it."""
    shown = await plan(rest, arguments)
    return Shown(shown.document, shown.lines, is_failure=bool(shown.document["changes"]))


async def plan(rest: Rest, arguments: argparse.Namespace) -> Shown:
    answer = await rest.call("POST", PATH, _body(arguments) | {"dry_run": True})
    arguments.digest = answer["digest"]  # what is done then is what was shown
    return Shown(answer, _lines(answer))


async def apply(rest: Rest, arguments: argparse.Namespace) -> Shown:
    answer = await rest.call("POST", PATH, _body(arguments) | {"digest": arguments.digest})
    lines = _lines(answer)
    if answer["new_accounts"]:
        shown = [(one["name"], one["shown_once"]) for one in answer["new_accounts"]]
        lines += ["", "The secrets of new accounts are shown this once:", *facts(shown)]
    failed = any(one["result"] == "failed" for one in answer["changes"])
    return Shown(answer, lines, is_failure=failed)


def _body(arguments: argparse.Namespace) -> dict[str, Any]:
    if not hasattr(arguments, "text"):
        arguments.text = _read(arguments.file)  # once: standard input has no second time
    return {"text": arguments.text, "delete": arguments.delete}


def _read(file: str) -> str:
    """Raises ConfigError."""
    try:
        data = sys.stdin.buffer.read(FILE_BYTES_MAX + 1) if file == "-" else _bytes_of(Path(file))
        if len(data) > FILE_BYTES_MAX:
            raise ConfigError(f"{file} is larger than {readable(FILE_BYTES_MAX)}")
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not text in UTF-8") from None
    except OSError as exc:
        raise ConfigError(f"{file} can't be read: {exc.strerror}") from exc


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _lines(answer: dict[str, Any]) -> list[str]:
    rows = [
        (one["what"], one["section"].replace("_", " "), one["name"], _difference(one), _result(one))
        for one in answer["changes"]
    ]
    lines = table(("change", "section", "name", "difference", "result"), rows, empty="nothing differs")
    lines += [line for one in answer["changes"] if one["losses"] for line in _losses(one["name"], one["losses"])]
    if answer["left"]:
        lines.append(f"{answer['left']} changes more: apply the file again for them")
    if answer["left_alone"]:
        lines.append(f"{len(answer['left_alone'])} are not named in the file and stay: --delete deletes them")
    return lines


def _difference(change: dict[str, Any]) -> str:
    if change["what"] == "delete":
        return ""
    before = change["before"]
    parts = (
        f"{name}: {cell(before[name])} → {cell(value)}" if before.get(name) is not None else f"{name}: {cell(value)}"
        for name, value in change["after"].items()
    )
    return "; ".join(parts)


def _losses(name: str, losses: dict[str, Any]) -> list[str]:
    """What an account would lose, and who is connected with it."""
    rights = ", ".join(_right(one) for one in losses["rights"])
    used = f"{name} is used by no connected client"
    if losses["clients"]:
        groups = f"; groups: {', '.join(losses['groups'])}" if losses["groups"] else ""
        used = f"{name} is used by {', '.join(losses['clients'])}{groups}"
    return [f"{name} loses {rights}", used]


def _right(right: dict[str, Any]) -> str:
    match right["scope"]:
        case "administration":
            return "administration of the brokers"
        case "address":
            return f"requests without a signature from {right['name']}"
    return f"{right['perm']} of {right['scope']} {right['name'] or '(others)'}"


def _result(change: dict[str, Any]) -> str:
    if change["result"] is None:
        return change["refusal"] and f"not possible: {change['refusal']}"
    return " ".join(filter(None, (change["result"], change["detail"])))


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="YAML or JSON as `export` prints it, or topics as CSV; - reads standard input"
    )
    parser.add_argument("--delete", action="store_true", help="also delete what the file's sections do not name")


COMMANDS = {
    "definitions": {
        "export": Command("print the definitions as YAML; no secret is in it", export, opens=open_rest),
        "diff": Command("what applying a file would change; exit code 1 if anything", diff, _file, opens=open_rest),
        "apply": Command("make the cluster as a file says", apply, _file, plan, loses=True, opens=open_rest),
    }
}
