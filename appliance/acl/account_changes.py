"""Requests about accounts: 50, 51 and 53 change them, 52 and 54 show them.

A change is written to the account's file, a new account to the default file, in RocketMQ's form. The file's other
content stays, except comments. Requests can't change the appliance's own account (managedBy).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from appliance.acl.account import PERMISSIONS, AccountError, check_permissions, read_account, text_of
from appliance.acl.account_book import AccountBook, now_ms
from appliance.acl.account_file import read_document, write_document
from appliance.acl.address import AddressPatternError, compile_patterns

logger = logging.getLogger(__name__)

MASK = "********"  # shown by 54 instead of a secret; in a request 50 it means "unchanged"
_PLAIN_FIELDS = ("secretKey", "whiteRemoteAddress", "admin", "defaultTopicPerm", "defaultGroupPerm")
_LIST_FIELDS = ("topicPerms", "groupPerms")


def update_account(book: AccountBook, fields: Mapping[str, str]) -> None:
    """50: create an account, or change the given fields of one. Raises AccountError, AccountFileError."""
    access_key = fields.get("accessKey", "").strip()
    changes = _changes(fields)
    with book.changing():
        path = book.current.file_of.get(access_key, book.default_file)
        document = read_document(path)
        accounts = _accounts(document)
        known = next((item for item in accounts if text_of(item, "accessKey") == access_key), None)
        _refuse_managed(known, access_key)
        updated = {**(known or {"accessKey": access_key}), **changes}
        read_account(updated)  # the same checks as when the file is read
        if updated == known:
            return
        if known is not None:
            accounts[accounts.index(known)] = updated
        else:
            accounts.append(updated)
        _write(path, document | {"accounts": accounts})


def delete_account(book: AccountBook, access_key: str) -> None:
    """51: delete an account. One that another broker of the same file deleted moments ago is no error.

    Raises AccountError, AccountFileError.
    """
    access_key = access_key.strip()
    refused = f"The accesskey[{access_key}] corresponding to accessConfig has been deleted failed."
    if not access_key:
        raise AccountError(refused)
    with book.changing():
        path = book.current.file_of.get(access_key)
        if path is None:
            if broken := ", ".join(map(str, book.broken_files)):
                raise AccountError(f"{refused} It may be in {broken}, which is invalid.")
            if not book.was_deleted_elsewhere(access_key):
                raise AccountError(refused)
            return
        document = read_document(path)
        accounts = _accounts(document)
        found = next((item for item in accounts if text_of(item, "accessKey") == access_key), None)
        _refuse_managed(found, access_key)
        _write(path, document | {"accounts": [item for item in accounts if item is not found]})
    book.deleted_here(access_key)


def update_white_addresses(book: AccountBook, addresses: str | None, file: str) -> None:
    """53: replace the global white list of an accounts file, by default of the default file. Raises AccountError."""
    refused = f"The globalWhiteAddresses[{addresses}] has been updated failed."
    if addresses is None:
        raise AccountError(refused)
    wanted = [part.strip() for part in addresses.split(",") if part.strip()]
    try:
        compile_patterns(wanted)
    except AddressPatternError as exc:
        raise AccountError(f"{refused} {exc}") from exc
    with book.changing():
        path = Path(file) if file else book.default_file
        if path not in book.current.files:  # the request names a path, and must not write any other file
            raise AccountError(refused)
        document = read_document(path)
        if document.get("globalWhiteRemoteAddresses") == wanted:
            return
        _write(path, document | {"globalWhiteRemoteAddresses": wanted})
    if "*" in wanted or "*.*.*.*" in wanted:
        logger.warning("every address is on the white list", extra={"event": "acl_white_list_open"})


def listing(book: AccountBook) -> dict[str, Any]:
    """54: all accounts and white lists, without secrets."""
    accounts = book.current
    shown = []
    for path, content in accounts.files.items():
        for account, raw in zip(content.accounts, content.raw_accounts, strict=True):
            if accounts.file_of.get(account.access_key) == path and accounts.by_key[account.access_key] is account:
                shown.append(_shown(raw, is_admin=account.is_admin))
    white = [address for content in accounts.files.values() for address in content.white_addresses]
    return {"globalWhiteAddrs": white, "plainAccessConfigs": shown}


def _shown(raw: Mapping[str, Any], *, is_admin: bool) -> dict[str, Any]:
    """One account as 54 shows it. Only these fields: the file may contain others that are not meant for clients."""
    shown: dict[str, Any] = {"accessKey": raw["accessKey"].strip(), "admin": is_admin}
    for name in ("defaultGroupPerm", "defaultTopicPerm", "groupPerms"):
        if raw.get(name):
            shown[name] = raw[name]
    shown["secretKey"] = MASK
    for name in ("topicPerms", "whiteRemoteAddress"):
        if raw.get(name):
            shown[name] = raw[name]
    return shown


def _changes(fields: Mapping[str, str]) -> dict[str, Any]:
    """The fields that the request changes. Raises AccountError."""
    changes: dict[str, Any] = {}
    for name in _PLAIN_FIELDS:
        value = fields.get(name)
        if value is None or (not value and name != "whiteRemoteAddress") or (name == "secretKey" and value == MASK):
            continue
        if name.startswith("default") and value.strip() not in PERMISSIONS:
            raise AccountError(
                f"Parse resource permission error for {name}={value}.\n"
                "The expected permissions are 'DENY' or 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'."
            )
        changes[name] = value.strip()
    if "admin" in changes:  # as Java reads a boolean
        changes["admin"] = "true" if changes["admin"].lower() == "true" else "false"
    for name in _LIST_FIELDS:
        if fields.get(name) is not None:
            entries = [entry.strip() for entry in fields[name].split(",") if entry.strip()]
            check_permissions(entries)
            changes[name] = entries
    return changes


def _accounts(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    accounts = document.get("accounts")
    return list(accounts) if isinstance(accounts, list) else []


def _refuse_managed(raw: Mapping[str, Any] | None, access_key: str) -> None:
    if raw is not None and text_of(raw, "managedBy"):
        raise AccountError(f"accessKey={access_key} is the appliance's own account: no request changes it")


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Write the file with the next version number."""
    versions = document.get("dataVersion")
    counter = 0
    if isinstance(versions, list) and versions and isinstance(versions[0], dict):
        text = str(versions[0].get("counter") or "0")
        counter = int(text) if text.isdecimal() else 0
    version = {"counter": str(counter + 1), "timestamp": str(now_ms())}
    write_document(path, {**document, "dataVersion": [version]})
