"""What a template shows that no translation reaches: words between tags, in attributes and in its tags' arguments."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from django.template.base import Lexer, Token, TokenType

# Elements whose content is code or data, the same in each language.
CODE = {"code", "kbd", "pre", "script", "style", "svg", "samp"}
SHOWN = {"title", "placeholder", "aria-label", "aria-description", "alt", "aria-roledescription"}
# Names and abbreviations which Chinese texts have as they are; anything else must be translated.
SAME = {
    "GantryMQ", "Gantry", "MQ", "RocketMQ", "UTC", "SHA", "JSON", "JSONL", "CSV", "TLS", "SQL", "SQL92", "REST", "API",
    "CPU", "URL", "HTTP", "HTTPS", "TCP", "ms", "KiB", "MiB", "GiB", "Ctrl", "Esc", "Python", "Java", "Go", "Node.js",
    "Maven", "npm", "Spark", "Parquet", "OpenAPI", "Swagger", "Prometheus", "Grafana", "curl", "hex", "base64", "UTF",
    "Slack", "ID", "PID", "IP", "xml", "pom", "min", "h", "d", "s", "B", "q", "RSS", "JVM", "GC", "n", "x",
    "MessagePack", "gzip", "zlib", "zstd", "Base64", "Hex", "bash", "sh", "SQLite", "PostgreSQL", "K", "OpenID",
    "gRPC", "POP",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_](?:[\w.'’-]*\w)?")
_ENGLISH = re.compile(r"[A-Za-z]")
_LITERAL = re.compile(r'(_\()?"([^"]*)"(\|(?:plural|pairs))?')
# The first literal of these tags is a name, of an address, a file, an icon or a metric.
NAMING = {"url", "static", "include", "extends", "block", "icon", "live", "load", "cycle", "translate", "commands"}
_SENTENCE = re.compile(r"[A-Z][a-z]+( |$)|[A-Za-z]{2,} [A-Za-z]{2,}")


def bare(source: str) -> list[str]:
    """`line: text` of each word that is shown and not translated."""
    found = _Texts()
    plain, literals = _without_tags(source)
    found.feed(plain)
    found.close()
    return sorted({*found.texts, *literals}, key=lambda text: (int(text.split(":")[0]), text))


def _without_tags(source: str) -> tuple[str, list[str]]:
    """The template without its tags and translated blocks, lines as they were; and the words among arguments."""
    parts: list[str] = []
    literals: list[str] = []
    is_translated = False
    for token in Lexer(source).tokenize():
        lines = "\n" * token.contents.count("\n")
        name = token.contents.split()[0] if token.contents.split() else ""
        if token.token_type == TokenType.BLOCK and name in ("blocktranslate", "endblocktranslate"):
            is_translated = name == "blocktranslate"
            parts.append(lines)
        elif token.token_type == TokenType.TEXT:
            parts.append(lines if is_translated else token.contents)
        else:
            parts.append(lines)
            literals += _literals(token, name)
    return "".join(parts), literals


def _literals(token: Token, name: str) -> list[str]:
    if token.token_type == TokenType.COMMENT or name == "translate":
        return []
    texts = [
        found[2]
        for number, found in enumerate(_LITERAL.finditer(token.contents))
        if not found[1] and not found[3] and not (number == 0 and name in NAMING)
        and not token.contents[: found.start()].endswith("plural:")
    ]  # fmt: skip
    if name in ("commands", "live", "if", "elif", "body", "query"):
        return []
    return [f'{token.lineno}: "{text}"' for text in texts if _SENTENCE.search(text) and _words(text)]


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if _ENGLISH.search(word) and word not in SAME]


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in CODE:
            self._code += 1
        for name, value in attrs:
            if name in SHOWN and _words(value or ""):
                self.texts.append(f"{self.getpos()[0]}: {name}={value}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in CODE:
            self._code = max(0, self._code - 1)

    def handle_data(self, data: str) -> None:
        if not self._code and _words(data):
            before = len(data) - len(data.lstrip())
            line = self.getpos()[0] + data[:before].count("\n")
            self.texts.append(f"{line}: {' '.join(data.split())}")


_SCRIPT_STRING = re.compile(
    r'\b(n?gettext)\((?:"(?:[^"\\]|\\.)*"(?:, )?)+'  # what is translated
    r'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\$]|\\.|\$(?!\{))*)'
)
_WORDS_OF_A_SENTENCE = re.compile(r"(?:^|[ .])[A-Za-z][a-z]+ [a-z]{2,}\b")
# What else has words in strings: names of classes, selectors, markup, modes.
_NO_SENTENCE = re.compile(r"[<=\[]|^use strict$|^ghost small$|-\w*\b.* |^[a-z]+ [a-z]+-|^muted")


def bare_in_script(source: str) -> list[str]:
    """`line: text` of each sentence in a script that is not given to gettext."""
    found = []
    for string in _SCRIPT_STRING.finditer(re.sub(r"(^|\s)//.*", "", source)):
        text = string[2] or string[3] or ""
        if not string[1] and ";" not in text and _WORDS_OF_A_SENTENCE.search(text) and not _NO_SENTENCE.search(text):
            found.append(f"{source.count(chr(10), 0, string.start()) + 1}: {text}")
    return found
