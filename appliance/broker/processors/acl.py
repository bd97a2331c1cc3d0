"""Accounts: 50 to 54, which mqadmin's updateAclConfig, deleteAclConfig, updateGlobalWhiteAddr, getAclConfig and
clusterAclConfigVersion send. Secrets go in and never come out.

Without aclEnable each answers with its own error, where RocketMQ is silent to 52 and 54.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from appliance.acl.account import AccountError
from appliance.acl.account_book import AccountBook
from appliance.acl.account_changes import delete_account, listing, update_account, update_white_addresses
from appliance.acl.account_file import AccountFileError
from appliance.errors import BrokerError
from appliance.settings.roles import BrokerConfig
from gantrymq.client.admin.accounts import NO_ACCESS_CONTROL
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import ACCESS_KEY

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

_REFUSALS = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED,
    RequestCode.DELETE_ACL_CONFIG: ResponseCode.DELETE_ACL_CONFIG_FAILED,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: ResponseCode.SYSTEM_ERROR,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: ResponseCode.SYSTEM_ERROR,
}


class AclParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    address: str
    accounts: AccountBook | None


async def update_config(parts: AclParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """50: make or change an account."""
    book, fields = _book(parts, request), request.ext_fields
    await _changed(connection, request, lambda: update_account(book, fields), fields.get("accessKey", ""))
    return request.reply()


async def delete_config(parts: AclParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """51: delete an account."""
    book, access_key = _book(parts, request), request.ext_fields.get("accessKey", "")
    await _changed(connection, request, lambda: delete_account(book, access_key), access_key)
    return request.reply()


async def update_white_list(parts: AclParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """53: replace the addresses that need no account."""
    book, fields = _book(parts, request), request.ext_fields
    addresses, file = fields.get("globalWhiteAddrs"), fields.get("aclFileFullPath", "")
    await _changed(connection, request, lambda: update_white_addresses(book, addresses, file), addresses or "")
    return request.reply()


def get_version(parts: AclParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """52: which state of the accounts this broker has, file by file."""
    book = _book(parts, request)
    files = {str(path): content.version.to_dict() for path, content in book.current.files.items()}
    return request.reply(
        ext_fields={
            "version": book.version().to_json().decode(),
            "allAclFileVersion": fastjson.dumps(files).decode(),
            "brokerName": parts.config.broker_name,
            "brokerAddr": parts.address,
            "clusterName": parts.config.cluster_name,
        }
    )


def get_config(parts: AclParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """54: the accounts, a mask in each secret's place."""
    return request.reply(body=fastjson.dumps(listing(_book(parts, request))))


def _book(parts: AclParts, request: RemotingCommand) -> AccountBook:
    if parts.accounts is None:
        code = _REFUSALS[RequestCode(request.code)]
        raise BrokerError(code, f"broker {parts.config.broker_name} {NO_ACCESS_CONTROL}")
    return parts.accounts


async def _changed(
    connection: ServerConnection, request: RemotingCommand, change: Callable[[], None], subject: str
) -> None:
    """Make a change in a thread, for it waits for the disk; log who made it. Raises BrokerError."""
    code = RequestCode(request.code)
    facts = {"peer": connection.remote_text, "by": request.ext_fields.get(ACCESS_KEY, ""), "subject": subject}
    try:
        await asyncio.to_thread(change)
    except (AccountError, AccountFileError) as exc:
        logger.warning(
            "accounts not changed",
            extra={"event": "acl_change_refused", "request": code.name, "why": str(exc)} | facts,
        )
        raise BrokerError(_REFUSALS[code], str(exc)) from exc
    logger.info("accounts changed by a request", extra={"event": "acl_changed", "request": code.name} | facts)
