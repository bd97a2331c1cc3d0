"""Chinese texts have Chinese stops, commas and brackets, also where a template puts two texts side by side."""

from __future__ import annotations

import re

import pytest

from dashboard.language.catalog import read
from tests.dashboard.language.texts import TEMPLATES
from tests.dashboard.language.update import catalogs

HAN = "\u4e00-\u9fff"
NO_PROSE = re.compile(r"<code>.*?</code>|<[^>]+>|“[^”]*”|\bhttps?://\S*|[A-Za-z\d%(){}$]+[.:;,=][A-Za-z\d%()]\S*")
ASCII = re.compile(
    rf"[{HAN}）”](?:[,;:!?]|[.](?=\s|$|[{HAN}（“])| [.,;:!?] )|[.,;:!?] ?[{HAN}（]|[{HAN}]\(|\([{HAN}]|\)[{HAN}]"
)
KEYS = re.compile(r"含字母、数字和 \. @ \+ - _")  # which characters a name may have
TOLD = re.compile(r"\{% blocktranslate.*?\{% endblocktranslate %\}|<pre.*?</pre>|<script.*?</script>", re.DOTALL)
BESIDE = re.compile(r"(?:%\}|\}\}|</(?:a|b|small|time|span|code)>)[,;:.] (?=\S)")
PROGRAMS = re.compile(r"connect/_(?!ticks)|_snippet\.html$")


def ascii_in(text: str) -> list[str]:
    prose = NO_PROSE.sub("X", KEYS.sub("", text))
    return ASCII.findall(prose) if re.search(f"[{HAN}]", prose) else []


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_no_chinese_text_has_ascii_stops(domain: str) -> None:
    path = catalogs()[domain]
    entries = read(path.read_text(encoding="utf-8"), path.name)
    found = [text for entry in entries if entry.message.text for text in entry.texts if ascii_in(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text", ["已停止.", "已停止, 请稍候", "位点:12 条", "Broker(主节点)", "是否继续?", "共 %(n)s 条;其余见下"]
)
def test_such_a_text_is_found(text: str) -> None:
    assert ascii_in(text)


@pytest.mark.parametrize(
    "text", ["耗时 1.5 秒", "见 https://a.b/c。", "用“;”分隔", "<code>a.b, c</code>：%(x)s", "key:order-1、q3 @ 1204"]
)
def test_code_numbers_and_names_are_none(text: str) -> None:
    assert not ascii_in(text)


def test_sending_a_message_to_its_topic_again_has_one_word() -> None:
    """As docs/glossary.md has it."""
    path = catalogs()["django"]
    entries = read(path.read_text(encoding="utf-8"), path.name)
    of_it = [entry for entry in entries if re.search(r"(?<!/)\bresen[dt]", entry.message.text, re.IGNORECASE)]
    assert len(of_it) > 20
    assert not [entry.message.text for entry in of_it if "重新投递" not in "".join(entry.texts)]
    other = re.compile(r"\bput\b.{0,12}\bback\b(?! into service)", re.IGNORECASE)
    assert not [entry.message.text for entry in entries if other.search(entry.message.text)]


def test_templates_put_texts_side_by_side_in_the_words_of_the_language() -> None:
    """As {% translate ", " %}: in Chinese it is a full-width one."""
    found = [
        f"{path.relative_to(TEMPLATES)}: {match[0]}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        if not PROGRAMS.search(str(path))
        for match in BESIDE.finditer(TOLD.sub("{{ told }}", path.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)
