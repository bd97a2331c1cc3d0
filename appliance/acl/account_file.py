"""One accounts file (plain_acl.yml): parsed as untrusted input, written atomically.

Every scalar is read as plain text: a secret key of digits stays as typed, and tags can't create other objects than
texts, lists and mappings. Errors name file and line and never quote the file, because it contains secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from appliance.acl.account import Account, AccountError, list_of, read_account
from appliance.acl.address import AddressPatternError, Matches, compile_patterns
from appliance.settings.replaced_file import replace_file
from gantrymq.errors import GantryError
from gantrymq.remoting.admin_bodies import DataVersion

FILE_BYTES_MAX = 16 << 20
ACCOUNTS_MAX = 100_000  # of one file

# Plain texts only: no tags, no conversion to numbers and booleans. The C version if PyYAML was built with it.
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_BOOLEANS = frozenset({"admin", "requireStamp"})
_NUMBERS = frozenset({"counter", "timestamp"})


class AccountFileError(GantryError):
    """The file can't be read or written, or is invalid."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True)
class FileContent:
    """The content of one file."""

    accounts: list[Account] = field(default_factory=list)
    raw_accounts: list[dict[str, Any]] = field(default_factory=list, repr=False)
    white_addresses: list[str] = field(default_factory=list)
    is_white: Matches = lambda address: False
    version: DataVersion = field(default_factory=DataVersion)


def read_content(path: Path) -> FileContent:
    """Read and check the whole file. Raises AccountFileError."""
    document = read_document(path)
    try:
        white = list_of(document, "globalWhiteRemoteAddresses")
        raw = _mappings(document, "accounts")
        if len(raw) > ACCOUNTS_MAX:
            raise AccountError(f"more than {ACCOUNTS_MAX} accounts")
        accounts = [_numbered(index, item) for index, item in enumerate(raw, start=1)]
        return FileContent(accounts, raw, white, compile_patterns(white), _version(document))
    except (AccountError, AddressPatternError, ValueError) as exc:
        raise AccountFileError(path, str(exc)) from exc


def read_document(path: Path) -> dict[str, Any]:
    """The file as texts, lists and mappings; {} for an empty one. Raises AccountFileError."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as exc:
        raise AccountFileError(path, exc.strerror or "can't be read") from exc
    if len(data) > FILE_BYTES_MAX:
        raise AccountFileError(path, f"larger than {FILE_BYTES_MAX} bytes")
    loader = None
    try:
        loader = _Loader(data.decode())
        document = loader.get_single_data()
    except UnicodeDecodeError as exc:
        raise AccountFileError(path, "is not UTF-8") from exc
    except (yaml.YAMLError, RecursionError) as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        # The error's text may quote the file, and so a secret: only the part before the quote is used.
        problem, _, _ = (getattr(exc, "problem", None) or "no YAML").partition("'")
        raise AccountFileError(path, f"{where}{problem.strip()}") from None
    finally:
        if loader is not None:
            loader.dispose()
    if document is None or document == "":
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise AccountFileError(path, "is not a mapping of names to values")
    return document


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Replace the file, readable by its owner only; it is on disk when this returns. Raises AccountFileError."""
    text = yaml.safe_dump(_typed("", document), sort_keys=False, allow_unicode=True, default_flow_style=False)
    try:
        replace_file(path, text, is_private=True)
    except OSError as exc:
        raise AccountFileError(path, f"can't be written: {exc.strerror}") from exc


def _numbered(index: int, fields: dict[str, Any]) -> Account:
    try:
        return read_account(fields)
    except AccountError as exc:
        raise AccountError(f"account {index}: {exc}") from exc


def _mappings(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = document.get(name)
    if value is None or value == "":
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise AccountError(f"{name} is not a list of mappings")
    return value


def _version(document: Mapping[str, Any]) -> DataVersion:
    versions = _mappings(document, "dataVersion")
    if not versions:
        return DataVersion()
    return DataVersion(int(versions[0].get("timestamp") or 0), int(versions[0].get("counter") or 0))


def _typed(name: str, value: Any) -> Any:
    """Values as RocketMQ's parser expects them: booleans and numbers as such, everything else as text."""
    if isinstance(value, Mapping):
        return {key: _typed(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(name, item) for item in value]
    if isinstance(value, str):
        if name in _BOOLEANS and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if name in _NUMBERS and value.isdecimal():
            return int(value)
    return value
