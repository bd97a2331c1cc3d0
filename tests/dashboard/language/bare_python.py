"""What a module says to people that no translation reaches: sentences among its strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from pathlib import PurePath

TRANSLATING = {
    "gettext", "gettext_lazy", "gettext_noop", "_", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy",
}  # fmt: skip
LOGGING = {"debug", "info", "warning", "error", "exception", "log", "critical"}
# Folders and modules that speak to programs, to a shell or to a developer: English for everyone.
FOR_PROGRAMS = (
    "dashboard/api/", "dashboard/rest/", "dashboard/exporter/", "dashboard/management/", "dashboard/migrations/",
    "dashboard/web/", "dashboard/http/problems.py", "dashboard/settings.py", "dashboard/asgi.py",
    "dashboard/database/address.py", "dashboard/live/layer_address.py", "dashboard/live/sockets.py",
    "dashboard/language/catalog.py", "dashboard/language/told.py",
    "dashboard/messages/message_views.py", "dashboard/reports/snippets.py", "dashboard/topics/change_views.py",
)  # fmt: skip
PARTS_FOR_PROGRAMS = re.compile(r"(^|_)(api|schemas|export)\.py$")  # of any feature
# What is written into the database in English and said by dashboard/language/told.py, or is data.
NO_TEXTS = {
    "answered with ", ": it may be partly done", "gantry report could not be started: ",
    "gantry report ended with exit code ", "hello from the dashboard, ", "orders are late", "out of reach",
}  # fmt: skip
_SENTENCE = re.compile(r"[A-Z][a-z]+,? [a-z']+[ .,]|[a-z]{2,} [a-z]{2,} [a-z]{2,}")


def is_for_programs(path: PurePath) -> bool:
    """Whether a module, named from the root, says nothing to people."""
    return str(path).startswith(FOR_PROGRAMS) or bool(PARTS_FOR_PROGRAMS.search(path.name))


def bare_in_python(tree: ast.Module, known: Container[str]) -> list[str]:
    """`line: text` of each sentence that is neither given to gettext, nor logged, nor a text of the catalog."""
    found = []
    for node in _shown(tree):
        text = node.value
        assert isinstance(text, str)
        is_pattern = "|" in text or "\n" in text  # a regular expression, lines of a file
        if _SENTENCE.search(text) and not is_pattern and text not in known and text not in NO_TEXTS:
            found.append(f"{node.lineno}: {text}")
    return found


def _shown(parent: ast.AST) -> Iterator[ast.Constant]:
    """The strings below a node that may be shown: not what is translated, logged, a docstring, or a task's name."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node, ast.Call) and _is_no_text(node):
            continue
        if isinstance(node, ast.keyword) and node.arg == "name" and isinstance(parent, ast.Call):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node
        yield from _shown(node)


def _is_no_text(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        owner = getattr(call.func.value, "id", "")
        return (owner == "logger" and call.func.attr in LOGGING) or owner == "re" or call.func.attr in TRANSLATING
    return getattr(call.func, "id", "") in TRANSLATING
