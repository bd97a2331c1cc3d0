"""The texts that the dashboard asks gettext for, read from its templates, Python modules and scripts.

Templates are read by Django's own parser, so a `blocktranslate` gives the text that it will look up. Two filters of
ours look texts up, too: `plural` and `pairs`.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import Field
from pathlib import Path
from typing import Any

from django.template import Engine
from django.template.base import Lexer, Node, NodeList, TokenType
from django.templatetags.i18n import BlockTranslateNode, TranslateNode

from appliance.reports.catalogue import REPORTS, Report
from appliance.settings.ignored import IGNORED
from appliance.settings.loader import settings_by_key
from appliance.settings.roles import BrokerConfig
from dashboard.language.catalog import Message
from store.base.config import MessageStoreConfig
from tests.source_files import ROOT, syntax_of

TEMPLATES = ROOT / "templates"
SCRIPTS = ROOT / "dashboard/static/dashboard"
MACHINE = ROOT / "appliance/cli/checks/machine.py"
ONE = {"gettext", "gettext_lazy", "gettext_noop", "_"}
MANY = {"ngettext", "ngettext_lazy"}
WITH_CONTEXT = {"pgettext", "pgettext_lazy"}

Found = dict[Message, str]  # to the place where it stands first, file:line

_STRING = r'"((?:[^"\\]|\\.)*)"'
_LITERAL = re.compile(r'_\((?:"([^"]*)"|\'([^\']*)\')\)')
_PLURAL = re.compile(r'\|plural:"([^"]*)"')
_PAIRS = re.compile(r'"([^"]*)"\|pairs')
_MAY_CALL = re.compile(r"gettext|\b_\s*\(")
_SCRIPT_CALL = re.compile(rf"\b(gettext|ngettext)\(\s*{_STRING}(?:\s*,\s*{_STRING})?")


@functools.cache
def texts_of_pages() -> Found:
    """The texts of templates and of Python modules, read once. Not to be changed."""
    found: Found = {}
    for path in sorted(TEMPLATES.rglob("*.html")):
        for message, line in _of_template(path.read_text(encoding="utf-8")):
            found.setdefault(message, f"{path.relative_to(ROOT)}:{line}")
    for path in sorted((ROOT / "dashboard").rglob("*.py")):
        if "migrations" not in path.parts:
            for message, line in _of_python(path):
                found.setdefault(message, f"{path.relative_to(ROOT)}:{line}")
    for text in (text for report in REPORTS.values() for text in _of_report(report)):
        found.setdefault(Message(text), "appliance/reports/catalogue.py")
    for text in (*(item.metadata["doc"] for item in _settings()), *IGNORED.values()):
        found.setdefault(Message(text), "the settings of brokers")
    for text in _of_findings(syntax_of(MACHINE)):
        found.setdefault(Message(text), str(MACHINE.relative_to(ROOT)))
    return found


def _of_findings(tree: ast.Module) -> Iterator[str]:
    """What brokers/machine.py translates: the first argument of each finding."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("good", "warning"):
            text = node.args[0]
            assert isinstance(text, ast.Constant) and isinstance(text.value, str), ast.unparse(node)
            yield text.value


def _settings() -> Iterator[Field[Any]]:
    """What cluster/settings_table.py translates the meanings of."""
    for of in (MessageStoreConfig, BrokerConfig):
        yield from settings_by_key(of).values()


def _of_report(report: Report) -> tuple[str, ...]:
    """What report_words.in_words translates."""
    columns = [text for column in report.columns for text in (column.title, column.about) if text]
    return (report.title, report.about, report.nothing, report.chart.title, *filter(None, [report.counts]), *columns)


def texts_of_scripts() -> Found:
    """The texts of the static scripts."""
    found: Found = {}
    for path in sorted(SCRIPTS.glob("*.js")):
        source = path.read_text(encoding="utf-8")
        for call in _SCRIPT_CALL.finditer(source):
            line = source.count("\n", 0, call.start()) + 1
            found.setdefault(Message(call[2], call[3] or ""), f"{path.relative_to(ROOT)}:{line}")
    return found


def _of_template(source: str) -> Iterator[tuple[Message, int]]:
    for node in _nodes(Engine.get_default().from_string(source).nodelist):
        if isinstance(node, TranslateNode):
            yield _of_translate(node)
        elif isinstance(node, BlockTranslateNode):
            yield _of_block(node)
    for token in Lexer(source).tokenize():
        if token.token_type not in (TokenType.BLOCK, TokenType.VAR):
            continue
        for literal in _LITERAL.finditer(token.contents):
            yield Message(literal[1] or literal[2]), token.lineno
        for word in _PLURAL.finditer(token.contents):
            yield Message(f"%(count)s {word[1]}", f"%(count)s {word[1]}s"), token.lineno
        for pairs in _PAIRS.finditer(token.contents):
            for pair in pairs[1].split(","):
                yield Message(pair.split(":", 1)[1]), token.lineno


def _nodes(nodes: NodeList) -> Iterator[Node]:
    return iter(nodes.get_nodes_by_type(Node))


def _of_translate(node: TranslateNode) -> tuple[Message, int]:
    text = node.filter_expression.var.literal if hasattr(node.filter_expression.var, "literal") else None
    text = text if isinstance(text, str) else node.filter_expression.var
    context = node.message_context.resolve({}) if node.message_context else ""
    assert isinstance(text, str), f"translate takes a text, no variable: {node.filter_expression}"
    return Message(text.replace("%", "%%"), "", context), node.token.lineno


def _of_block(node: BlockTranslateNode) -> tuple[Message, int]:
    one, _ = node.render_token_list(node.singular)
    many = node.render_token_list(node.plural)[0] if node.plural else ""
    context = node.message_context.resolve({}) if node.message_context else ""
    return Message(one, many, context), node.token.lineno


def _of_python(path: Path) -> Iterator[tuple[Message, int]]:
    if not _MAY_CALL.search(path.read_text(encoding="utf-8")):
        return  # most modules: there is nothing to parse for
    for call in ast.walk(syntax_of(path)):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        arguments = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        if name in ONE and len(arguments) == 1:
            yield Message(arguments[0]), call.lineno
        elif name in MANY and len(arguments) == 2:
            yield Message(arguments[0], arguments[1]), call.lineno
        elif name in WITH_CONTEXT and len(arguments) == 2:
            yield Message(arguments[1], "", arguments[0]), call.lineno
