"""Who calls: the client's id, what it was written in, its account.

With accounts each call is signed (v2: HMAC-SHA1 of the header x-mq-date-time, and of nothing else). Clients write local
time there and call it UTC, so its age says nothing. What an account may do, the brokers decide: the proxy signs what it
asks them for with the key of the caller's account. It looks at the permissions itself, too, because brokers let
through what comes from a white list, and the proxy's own address may be on one.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from appliance.acl.account import Account
from appliance.acl.account_book import AccountBook
from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code, Resource
from gantrymq.errors import MessageRejected
from gantrymq.message.namespaces import Namespace
from gantrymq.message.topics import SYSTEM_GROUP_PREFIX, check_group, check_topic, is_system_topic
from gantrymq.remoting.signature import SigningKey

CLIENT_ID_CHARS_MAX = 255
ALGORITHM = "MQv2-HMAC-SHA1"
_NO_ACCOUNT = SigningKey("no account has this key")  # an unknown account takes as long as a known one
_PART = re.compile(r"(\w+)=([^,\s]*)")


@dataclass(frozen=True, slots=True)
class Caller:
    """One call's client. account: None where brokers ask for none. left_s: until the call's deadline, None: no end."""

    client_id: str
    language: str
    version: str
    account: Account | None
    address: str
    left_s: float | None

    def topic(self, resource: Resource, need: int) -> str:
        """The whole name of a topic, if it can be one and the account has the permission. Refused."""
        whole = whole_name(resource)
        try:
            check_topic(whole)
        except MessageRejected as exc:
            raise Refused(Code.ILLEGAL_TOPIC, str(exc)) from exc
        if is_system_topic(whole):
            raise Refused(Code.ILLEGAL_TOPIC, f"{whole} is a system topic")
        if self.account is not None and not self.account.may_topic(whole, need):
            raise Refused(Code.UNAUTHORIZED, f"{self.account.access_key} has no such permission on topic {whole}")
        return whole

    def group(self, resource: Resource) -> str:
        """The whole name of a consumer group, likewise."""
        whole = whole_name(resource)
        try:
            check_group(whole)
        except MessageRejected as exc:
            raise Refused(Code.ILLEGAL_CONSUMER_GROUP, str(exc)) from exc
        if whole.startswith(SYSTEM_GROUP_PREFIX):
            raise Refused(Code.ILLEGAL_CONSUMER_GROUP, f"{whole} is a system group")
        if self.account is not None and not self.account.may_group(whole):
            raise Refused(Code.UNAUTHORIZED, f"{self.account.access_key} has no permission on group {whole}")
        return whole


def whole_name(resource: Resource) -> str:
    """The name that brokers know: with the namespace in front."""
    return Namespace(resource.resource_namespace).wrap(resource.name)


class Gate:
    """Tells callers from their headers. accounts: None where brokers ask for none."""

    def __init__(self, accounts: AccountBook | None, *, requires_stamp: bool = False) -> None:
        self._accounts = accounts
        self._requires_stamp = requires_stamp

    def admit(self, headers: Mapping[str, object], address: str, left_s: float | None) -> Caller:
        """The caller; Refused without a client id, or without the signature of an account."""
        client_id = _text(headers, "x-mq-client-id")
        if not client_id or len(client_id) > CLIENT_ID_CHARS_MAX:
            raise Refused(Code.CLIENT_ID_REQUIRED, f"x-mq-client-id: 1 to {CLIENT_ID_CHARS_MAX} characters are wanted")
        return Caller(
            client_id,
            _text(headers, "x-mq-language"),
            _text(headers, "x-mq-client-version"),
            None if self._accounts is None else self._account(self._accounts, headers),
            address,
            left_s,
        )

    def _account(self, accounts: AccountBook, headers: Mapping[str, object]) -> Account:
        authorization, stamp = _text(headers, "authorization"), _text(headers, "x-mq-date-time")
        parts = dict(_PART.findall(authorization)) if authorization.startswith(ALGORITHM) else {}
        account = accounts.current.by_key.get(parts.get("Credential", "").partition("/")[0])
        wanted = (account.key if account is not None else _NO_ACCOUNT).digest(stamp.encode()).hex()
        is_right = hmac.compare_digest(wanted, parts.get("Signature", "").lower().encode("ascii", "replace").decode())
        if account is None or not is_right or not stamp:
            raise Refused(Code.UNAUTHORIZED, "no account, or a wrong signature: brokers here require an account")
        if account.requires_stamp or (account.requires_stamp is None and self._requires_stamp):
            why = f"{account.access_key} must stamp its requests (aclRequireStamp), which RocketMQ 5 clients can't"
            raise Refused(Code.UNAUTHORIZED, why)
        return account


def _text(headers: Mapping[str, object], name: str) -> str:
    value = headers.get(name, "")
    return value if isinstance(value, str) else ""
