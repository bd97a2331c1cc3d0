"""Each text of the pages is there in Chinese, and holds the same places and tags as the English one."""

from __future__ import annotations

import ast
import gettext
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dashboard.audit import broker_trails
from dashboard.audit.words import ACTIONS
from dashboard.language.catalog import Entry, Message, read, write
from dashboard.language.compiled import compiled
from tests.dashboard.language.bare import bare, bare_in_script
from tests.dashboard.language.bare_python import bare_in_python, is_for_programs
from tests.dashboard.language.texts import SCRIPTS, TEMPLATES, Found, texts_of_pages, texts_of_scripts
from tests.dashboard.language.update import catalogs, updated
from tests.source_files import ROOT, syntax_of

HOW = (
    "\nRun `python -m tests.dashboard.language.update`, then write the Chinese of each new msgid into its msgstr in\n"
    "dashboard/locale/zh_Hans/LC_MESSAGES/ (django.po for pages, djangojs.po for scripts). The words that we use for\n"
    "RocketMQ's terms are in docs/glossary.md."
)
MODULES = ROOT / "dashboard"
PLACE = re.compile(r"%\((\w+)\)[sd]|\$\{(\w+)\}|\{(\w+)\}|%[sd]")


@pytest.fixture(scope="module")
def texts() -> dict[str, Found]:
    return {"django": texts_of_pages(), "djangojs": texts_of_scripts()}


def entries_of(domain: str) -> list[Entry]:
    path = catalogs()[domain]
    return read(path.read_text(encoding="utf-8"), path.name)


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_each_text_has_its_chinese(domain: str, texts: dict[str, Found]) -> None:
    known = {entry.message: entry for entry in entries_of(domain)}
    missing = [
        f"{place}: {message.text}"
        for message, place in texts[domain].items()
        if message not in known or not all(known[message].texts) or known[message].is_fuzzy
    ]
    assert not missing, "without Chinese:\n" + "\n".join(missing) + HOW


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_no_entry_is_left_over_and_each_stands_where_it_belongs(domain: str, texts: dict[str, Found]) -> None:
    entries = entries_of(domain)
    left_over = [entry.message.text for entry in entries if entry.message.text and entry.message not in texts[domain]]
    assert not left_over, f"no page asks for: {left_over}{HOW}"
    assert write(entries) == catalogs()[domain].read_text(encoding="utf-8"), "not as the command writes it" + HOW


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_places_and_tags_are_the_same_in_both(domain: str) -> None:
    wrong = [
        f"{entry.message.text} → {text}"
        for entry in entries_of(domain)
        if entry.message.text
        for text in entry.texts
        if text and _parts(text) != _parts(entry.message.plural or entry.message.text)
    ]
    assert not wrong, "other places (%(name)s) or HTML tags than the English text:\n" + "\n".join(wrong)


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_a_template_shows_no_word_outside_of_the_catalog(path: Path) -> None:
    found = bare(path.read_text(encoding="utf-8"))
    assert not found, (
        f"{path.relative_to(ROOT)} shows words that are not translated. Write {{% translate "
        '"…" %}} around a text, {% blocktranslate trimmed %} around a sentence with values:\n' + "\n".join(found) + HOW
    )


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.js")), ids=lambda path: str(path.name))
def test_a_script_shows_no_sentence_outside_of_the_catalog(path: Path) -> None:
    found = bare_in_script(path.read_text(encoding="utf-8"))
    assert not found, f'{path.relative_to(ROOT)} has sentences outside of gettext("…"):\n' + "\n".join(found) + HOW


def test_no_module_says_a_sentence_outside_of_the_catalog(texts: dict[str, Found]) -> None:
    known = {text for message in texts["django"] for text in (message.text, message.plural)}
    found = [
        f"{path.relative_to(ROOT)}:{sentence}"
        for path in sorted(MODULES.rglob("*.py"))
        if not is_for_programs(path.relative_to(ROOT))
        for sentence in bare_in_python(syntax_of(path), known)
    ]
    assert not found, 'sentences outside of gettext("…"):\n' + "\n".join(found) + HOW


def test_each_action_of_the_audit_log_has_its_words() -> None:
    """What `note` is given as a plain text, and what requests to brokers are called."""
    noted = {
        call.args[1].value
        for path in MODULES.rglob("*.py")
        for call in ast.walk(syntax_of(path))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "note" and len(call.args) > 1
        if isinstance(call.args[1], ast.Constant)
    }
    assert len(noted) > 30
    assert not {*noted, *broker_trails.ACTIONS.values()} - ACTIONS


def test_a_sentence_in_a_module_is_noticed() -> None:
    source = (
        '"""What it is for."""\nlogger.info("started for the first time")\nx = gettext("There is none of it")\n'
        'raise Gone(f"There is no {name} any more")\n'
    )
    assert bare_in_python(ast.parse(source), {"There is none of it"}) == ["4: There is no "]


def test_a_sentence_in_a_script_is_noticed() -> None:
    source = 'a.className = "ghost small"; // none\nb.textContent = "Too many at once";\nc(gettext("Not so many"));'
    assert bare_in_script(source) == ["2: Too many at once"]
    assert bare('<p title="Of the disk">{% translate "Full" %} soon <b>{{ name }}</b></p>') == [
        "1: soon",
        "1: title=Of the disk",
    ]


def test_what_is_compiled_is_what_gettext_reads() -> None:
    chosen = [
        Entry(Message(""), ["Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=1; plural=0;\n"]),
        Entry(Message('Say "no"\n'), ["说“不”\n"]),
        Entry(Message("%(count)s queue", "%(count)s queues"), ["%(count)s 个队列"]),
        Entry(Message("open", "", "a state"), ["打开"]),
        Entry(Message("not yet"), [""]),
    ]
    source = write(chosen)
    assert [entry.message for entry in read(source)] == sorted(entry.message for entry in chosen)
    there = gettext.GNUTranslations(io.BytesIO(compiled(read(source))))
    assert there.gettext('Say "no"\n') == "说“不”\n"
    assert there.ngettext("%(count)s queue", "%(count)s queues", 3) == "%(count)s 个队列"
    assert (there.pgettext("a state", "open"), there.gettext("not yet")) == ("打开", "not yet")


def test_entries_that_a_merge_put_together_are_still_two() -> None:
    merged = 'msgid "one"\nmsgid "1"\nmsgstr "一"\nmsgid "two"\nmsgstr ""\n\nmsgid "two"\nmsgstr "二"\n'
    wanted = {Message("one"), Message("two"), Message("three")}
    assert write(updated(read(merged), wanted)) == (
        'msgid "one"\nmsgstr "一"\n\nmsgid "three"\nmsgstr ""\n\nmsgid "two"\nmsgstr "二"\n'
    )


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(f"<{tag} {sorted(attrs)}>")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"</{tag}>")


def _parts(text: str) -> tuple[set[str], list[str]]:
    tags = _Tags()
    tags.feed(text)
    tags.close()
    return {found[0] for found in PLACE.finditer(text)}, sorted(tags.tags)
