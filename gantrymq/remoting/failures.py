"""Errors about a peer that say who it is, what was asked of it, and what may help.

Who it is follows from the request: each code is served by name servers or by brokers, never by both.
"""

from __future__ import annotations

import os
import socket
import ssl

from gantrymq.errors import ConnectError, LeaseEnded, RequestTimeout, ResponseError
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

BROKER, NAME_SERVER = "broker", "name server"

SERVED_BY_NAME_SERVERS = frozenset(
    {
        RequestCode.PUT_KV_CONFIG,
        RequestCode.GET_KV_CONFIG,
        RequestCode.DELETE_KV_CONFIG,
        RequestCode.REGISTER_BROKER,
        RequestCode.UNREGISTER_BROKER,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.GET_BROKER_CLUSTER_INFO,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        RequestCode.GET_KVLIST_BY_NAMESPACE,
        RequestCode.GET_TOPICS_BY_CLUSTER,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
        RequestCode.GET_UNIT_TOPIC_LIST,
        RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
        RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
        RequestCode.UPDATE_NAMESRV_CONFIG,
        RequestCode.GET_NAMESRV_CONFIG,
        RequestCode.QUERY_DATA_VERSION,
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
    }
)
ASKED_OF_CLIENTS = frozenset({RequestCode.CHECK_TRANSACTION_STATE, RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT})
_REQUEST_NAMES = {code.value: code.name for code in RequestCode}
_RESPONSE_NAMES = {code.value: code.name for code in ResponseCode}

_HINTS = {
    ResponseCode.SYSTEM_BUSY.value: "it has too much to do: send again after a while, or less at once",
    ResponseCode.NO_PERMISSION.value: "does the account of credentials= have this permission, and the topic or group?",
    ResponseCode.TOPIC_NOT_EXIST.value: "create the topic, or check its name",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST.value: "create the group, or check its name",
}
_NO_SUCH_REQUEST = {
    NAME_SERVER: "is this a broker's address? Give the name servers', whose usual port is 9876",
    BROKER: "the server is of another kind, or too old for this",
}
WANTS_TLS = "does the port speak TLS only? Then give tls="
SILENT = "it has not sent anything: is it a name server? Their usual port is 9876"
SPEAKS_NO_TLS = "does this port speak TLS? Without tls= the client connects without"
_OF_LEASES = frozenset(
    {RequestCode.ACK_MESSAGE, RequestCode.BATCH_ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME}
)


def role_of(code: int) -> str:
    """Who serves the request."""
    if code in SERVED_BY_NAME_SERVERS:
        return NAME_SERVER
    return "" if code in ASKED_OF_CLIENTS else BROKER


def request_name(code: int) -> str:
    """The name of the request code, its number when it has none."""
    return _REQUEST_NAMES.get(code) or f"request {code}"


def timed_out(address: str, code: int, timeout_s: float, *, was_silent: bool = False) -> RequestTimeout:
    """The peer did not answer in time. was_silent: not a byte came over the connection."""
    role = role_of(code)
    hint = SILENT if was_silent and role == NAME_SERVER else ""
    return RequestTimeout(address, code, timeout_s, role=role, request=request_name(code), hint=hint)


def not_connected(address: str, reason: str, code: int, *, hint: str = "") -> ConnectError:
    """No connection for this request, or none any more."""
    return ConnectError(address, reason, role=role_of(code), hint=hint)


def refused(answer: RemotingCommand, address: str, code: int) -> ResponseError:
    """The peer answered request `code` with what the call does not accept."""
    role = role_of(code)
    hint = _HINTS.get(answer.code, "")
    if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        hint = _NO_SUCH_REQUEST.get(role, "")
    is_ended = answer.code == ResponseCode.NO_MESSAGE and code in _OF_LEASES
    kind = LeaseEnded if is_ended else ResponseError
    return kind(
        answer.code,
        answer.remark,
        address=address,
        role=role,
        request=request_name(code),
        name=_RESPONSE_NAMES.get(answer.code, ""),
        hint=hint,
    )


def why_not_connected(failure: OSError, *, uses_tls: bool) -> tuple[str, str]:
    """Why a connection could not be made, and what may help. Some failures of a TLS handshake have no text."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return str(failure), "trust_cert= of TlsConfig names the authority; check_host=False leaves the name unchecked"
    if isinstance(failure, ConnectionRefusedError):
        return _in_words(failure), "is it running, and is this its port?"
    if uses_tls and isinstance(failure, ssl.SSLError | ConnectionError):
        return f"TLS handshake failed: {str(failure) or 'the peer closed the connection'}", SPEAKS_NO_TLS
    if isinstance(failure, socket.gaierror):
        return str(failure), "is the host's name right?"
    return _in_words(failure), ""


def _in_words(failure: OSError) -> str:
    """What the system calls it: asyncio's own text repeats the address, as Python writes a tuple."""
    if failure.errno:
        return os.strerror(failure.errno).lower()
    return str(failure) or type(failure).__name__
