"""The parts of SyncAdminClient, written from those of AdminClient, as a test compares.

`python -m tests.gantrymq.client.blocking.admin_twins` writes them. Written out, and not made when imported, so that
editors, help() and type checkers see each method with its arguments, its result and its help.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.source_files import ROOT

ORIGINALS = ROOT / "gantrymq" / "client" / "admin"
TWINS = ROOT / "gantrymq" / "client" / "blocking" / "admin"
PARTS = (
    "accounts", "brokers", "clients", "cluster", "groups", "messages", "name_servers", "offsets", "succession",
    "topics",
)  # fmt: skip
HEAD = '''\
"""{part}, for threads.

Written from gantrymq.client.admin.{part}, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

'''
KNOWN = {"None", "bool", "bytes", "dict", "float", "frozenset", "int", "list", "object", "set", "str", "tuple"}


def twin_of(part: str) -> str:
    """The module of one part."""
    tree = ast.parse((ORIGINALS / f"{part}.py").read_text(encoding="utf-8"))
    (original,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Admin")]
    methods = [_method(node) for node in original.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)]
    body = [
        f"class Sync{original.name}(BlockingPart[{original.name}]):",
        f"    {_docstring(original)}",
        "",
        *(line for method in methods for line in method),
    ]
    text = "\n".join(body) + "\n"
    return _formatted(HEAD.format(part=part) + "\n".join(_imports(tree, text, part, original.name)) + "\n\n\n" + text)


def _docstring(node: ast.ClassDef | ast.AsyncFunctionDef | ast.FunctionDef) -> str:
    return f'"""{ast.get_docstring(node, clean=False)}"""'


def _method(node: ast.AsyncFunctionDef | ast.FunctionDef) -> list[str]:
    """The lines of a public method or property; none for what is private."""
    if node.name.startswith("_"):
        return []
    assert node.returns is not None
    returns = ast.unparse(node.returns)
    is_property = any(ast.unparse(each) == "property" for each in node.decorator_list)
    given = ", ".join(
        [each.arg for each in node.args.args[1:]]
        + ([f"*{node.args.vararg.arg}"] if node.args.vararg else [])
        + [f"{each.arg}={each.arg}" for each in node.args.kwonlyargs]
    )
    call = f"self._part().{node.name}" + ("" if is_property else f"({given})")
    if returns.startswith("AsyncGenerator"):
        returns = re.sub(r"AsyncGenerator\[(.*), None\]", r"Iterator[\1]", returns)
        result = f"return self._each({call})"
    elif isinstance(node, ast.AsyncFunctionDef):
        result = f"{'' if returns == 'None' else 'return '}self._run({call})"
    else:
        result = f"return {call}"
    return [
        *(["    @property"] if is_property else []),
        f"    def {node.name}({ast.unparse(node.args)}) -> {returns}:",
        f"        {_docstring(node)}",
        f"        {result}",
        "",
    ]


def _imports(tree: ast.Module, text: str, part: str, original: str) -> list[str]:
    """The lines that import what the text names."""
    code = ast.unparse(_without_docstrings(ast.parse(text)))
    named = set(re.findall(r"\b[A-Za-z_]+\b", code)) - KNOWN
    lines = ["from gantrymq.client.blocking.base import BlockingPart"]
    if "Iterator" in named:
        lines.append("from collections.abc import Iterator")
    own = {original}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            lines += [f"from {node.module} import {each.name}" for each in node.names if each.name in named]
        elif isinstance(node, ast.ClassDef) and node.name in named:
            own.add(node.name)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in named:
            own.add(ast.unparse(node.targets[0]))
    return [*lines, *(f"from gantrymq.client.admin.{part} import {name}" for name in sorted(own))]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _formatted(text: str) -> str:
    """As ruff would leave it."""
    for command in (["check", "--fix", "--select", "I,F401"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(TWINS / "part.py"), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def write(folder: Path) -> None:
    for part in PARTS:
        (folder / f"{part}.py").write_text(twin_of(part), encoding="utf-8")


if __name__ == "__main__":
    write(TWINS)
