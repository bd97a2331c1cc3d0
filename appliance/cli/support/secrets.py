"""Secrets of an appliance, and texts without them.

Two rules, so that a place which one of them does not know is caught by the other:

1. By value: what the data folder, the settings and the environment have as passwords, keys and tokens is taken out
   wherever it stands, and so is its quoted form in an address.
2. By form: what stands behind a name such as `password=`, before the @ of an address, behind the host of a web address
   (webhooks have their secret there), and between the lines of a PEM file.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.loader import read_properties
from appliance.settings.variables import ENVIRONMENT_PREFIX

REMOVED = "(removed)"
SHORTEST = 4  # a shorter value stands everywhere by chance; the second rule knows its place
KEY_CHARS_MIN = 12  # of a part of a webhook's address
NAME = r"pass(?:word|wd|phrase)?|secret(?:[_.-]?key)?|access[_.-]?key(?:[_.-]?id)?|token|api[_.-]?key|credentials?|dsn"
IS_SECRET = re.compile(NAME, re.IGNORECASE)
IS_NO_SECRET = re.compile(r"(file|folder|path|enable|url)$", re.IGNORECASE)
FORMS = (
    (re.compile(r"-----BEGIN [A-Z ]*-----.*?(-----END [A-Z ]*-----|\Z)", re.DOTALL), REMOVED),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s\"'@]+@", re.IGNORECASE), rf"\1{REMOVED}@"),
    (re.compile(r"(\bhttps?://[^/\s\"'<>?#]+)[/?#][^\s\"'<>]*", re.IGNORECASE), rf"\1/{REMOVED}"),
    (
        re.compile(rf"(\b[\w.-]*(?:{NAME})\b[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;}}\"']+)", re.IGNORECASE),
        rf"\1{REMOVED}",
    ),
    (re.compile(r"(\bAuthorization[\"']?\s*[:=]\s*|\bBearer\s+)[^\r\n,}]+", re.IGNORECASE), rf"\1{REMOVED}"),
)
DATABASE_NAMES = re.compile(NAME + r"|settings|hash|session_data|^url$", re.IGNORECASE)


class Secrets:
    """The values of one appliance. `texts` are those that must be in no file of a bundle."""

    def __init__(self, config: ApplianceConfig, environment: Mapping[str, str]) -> None:
        found = {value.strip() for value in _values(config, environment)}
        quoted = {form(value) for value in found for form in (quote, unquote, _in_json)}
        self.texts = sorted({value for value in found | quoted if len(value) >= SHORTEST}, key=len, reverse=True)

    def without(self, text: str) -> str:
        """The text with each secret replaced."""
        for value in self.texts:
            text = text.replace(value, REMOVED)
        for form, instead in FORMS:
            text = form.sub(instead, text)
        return text


def is_secret_name(name: str) -> bool:
    """Whether a setting's name says that its value is a secret; a name of a file is none."""
    return bool(IS_SECRET.search(name)) and not IS_NO_SECRET.search(name)


def _values(config: ApplianceConfig, environment: Mapping[str, str]) -> Iterator[str]:
    yield from (value for name, value in environment.items() if is_secret_name(name))
    for name in ("database_url", "channel_layer_url"):
        yield from _of_url(getattr(config, name))
    yield from (part for value in environment.values() if "://" in value for part in _of_url(value))
    yield _content(config.dashboard_folder / "secret_key")
    files = [config.oidc_client_secret_file, config.attach_account, config.tls_key]
    for path in {Path(name) for name in files if name} | set(_private_files(config.data)):
        yield from _of_file(path)
    for path in sorted(config.data.glob("**/*.properties")):
        for name, value in read_properties(_content(path)).items():
            if is_secret_name(name):
                yield value
            elif value and name.lower().endswith(("passwordfile", "credentialsfile", "keypath")):
                yield from _of_file(Path(value))
            elif "://" in value:
                yield from _of_url(value)
    yield from _of_database(config.dashboard_folder / "db.sqlite3")


def _private_files(data: Path) -> Iterator[Path]:
    """Accounts of clients, and what etcd is opened with."""
    for pattern in ("accounts/**/*.yml", "etcd/*.json", "**/*.key", "**/*.pem", "**/*secret*"):
        yield from (path for path in data.glob(pattern) if path.is_file())


def _of_file(path: Path) -> Iterator[str]:
    """All that may be one in it: the lines of keys, and what stands behind a colon or an equals sign."""
    for line in _content(path).splitlines():
        text = line.strip()
        if not text.startswith("-----"):
            yield text if ":" not in text and "=" not in text.rstrip("=") else ""
        name, separator, value = text.lstrip("- ").partition(":" if ":" in text else "=")
        if separator and is_secret_name(name):
            yield value.strip().strip("\"',")


def _of_url(url: str) -> Iterator[str]:
    with contextlib.suppress(ValueError):
        yield urlsplit(url).password or ""


def _of_webhook(url: str) -> Iterator[str]:
    """The address, and the parts of it that look like no word: chats have their keys there."""
    yield url
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        yield from (each for each in re.split(r"[/&=]", f"{parts.path}/{parts.query}") if len(each) >= KEY_CHARS_MIN)


def _of_database(path: Path) -> Iterator[str]:
    """Hashes of passwords and tokens, and the settings of alert channels: each text in them."""
    if not path.is_file():
        return
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db,
    ):
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if DATABASE_NAMES.search(row[1])]
            for column in columns:
                for (value,) in db.execute(f'SELECT DISTINCT "{column}" FROM "{table}"'):
                    yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    """Of JSON each value that is behind a secret's name, or is an address; of another text the whole."""
    if not isinstance(value, str) or len(value) < SHORTEST:
        return
    try:
        content = json.loads(value)
    except ValueError:
        yield value
        return
    if isinstance(content, dict):
        for name, inner in content.items():
            if isinstance(inner, str) and (is_secret_name(name) or name == "url" or "://" in inner):
                yield from _of_webhook(inner)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # what this account can't read, no part of the bundle can show


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def settings_shown(config: ApplianceConfig, environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings of `gantry up` and their variables, as they may be shown."""
    settings = config.to_environment()
    given = {name: value for name, value in environment.items() if name.startswith(ENVIRONMENT_PREFIX)}
    both = {"settings": settings, "environment": given}
    return {
        kind: {name: REMOVED if value and is_secret_name(name) else value for name, value in sorted(values.items())}
        for kind, values in both.items()
    }
