"""The gate before the lanes: may this request be served?

    1  the address is on the global white list        -> no account needed, but for administration
    2  there is an account, known here                 else refused
    3  the address is on the account's own white list  -> no signature needed, and no permission but admin
    4  the signature fits                              else refused
    5  a stamp, where there is one or must be one, is good and fresh
    6  the account has what the table asks for         else refused

RocketMQ's order, with two doors shut: a white list opens no administration, and who guesses account names learns
nothing, neither from words nor from time.
"""

from __future__ import annotations

import itertools
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from appliance.acl.account import Account
from appliance.acl.account_book import AccountBook, Accounts
from appliance.acl.needs import Lookup
from appliance.acl.permission_table import PERMISSIONS, Rule
from appliance.acl.replay import ReplayGuard, StampRefused
from appliance.acl.signature_check import SignatureCheck
from appliance.errors import BrokerError
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.signature import ACCESS_KEY, STAMP, SigningKey

logger = logging.getLogger(__name__)

UNKNOWN_CODES_MAX = 32  # of a connection that was never let in
TEXT_CHARS_MAX = 512  # names in it are the peer's
TOLD_PEERS_MAX = 1024
TOLD_AGAIN_S = 10.0

# A signature covers the fields' values in the order of their names, not the names: a stamp under another name, or split
# over several, still stands behind the access key, for nothing that our SDK sends sorts between.
HIDDEN_STAMP = re.compile(rb"[0-9]{13}\.[0-9a-f]{16}\.[0-9]+\.[0-9]")


class AccessDenied(BrokerError):
    """Refused. `reason` is a short word for figures; the text has the shape that Java's clients show."""

    def __init__(self, reason: str, text: str) -> None:
        remark = f"org.apache.rocketmq.acl.common.AclException: {text[:TEXT_CHARS_MAX]}"
        super().__init__(ResponseCode.NO_PERMISSION, remark)
        self.reason = reason


class Peer(Protocol):
    """What the gate knows of a connection."""

    access: Any

    @property
    def remote_address(self) -> tuple[str, int]: ...
    @property
    def remote_text(self) -> str: ...
    @property
    def local_host(self) -> str: ...


class Request(Protocol):
    """What the gate reads of a request; ext_fields must be all of them, as texts."""

    @property
    def code(self) -> int: ...
    @property
    def ext_fields(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


@dataclass(slots=True)
class Notes:
    """What is remembered of a connection."""

    number: int
    accounts: Accounts | None = None  # the state for which is_white holds
    is_white: bool = False
    account: Account | None = None  # who sent the last request that was let in
    unknown_codes: int = 0


@dataclass(frozen=True)
class AccessOptions:
    """requires_stamp: refuse requests that anybody could send again, where the account doesn't say otherwise."""

    requires_stamp: bool = False
    stamp_window_ms: int = 300_000


class Access:
    """The gate of one process. Call it with each request, before it is queued."""

    def __init__(
        self,
        book: AccountBook,
        lookup: Lookup,
        *,
        table: Mapping[int, Rule] = PERMISSIONS,
        options: AccessOptions | None = None,
    ) -> None:
        self._book = book
        self._lookup = lookup
        self._table = table
        self._options = options or AccessOptions()
        self._signatures = SignatureCheck()
        self._replay = ReplayGuard(self._options.stamp_window_ms)
        self._nobody = Account("", SigningKey(secrets.token_hex(16)))  # takes as long to refuse as anybody
        self._numbers = itertools.count(1)
        self._told: dict[tuple[str, str], float] = {}
        self.denied: Counter[str] = Counter()  # by reason
        self.unstamped = 0  # signed requests that anybody who saw them could send again

    def __call__(self, peer: Peer, request: Request) -> None:
        """Let the request pass, or raise AccessDenied; BrokerError when it points at a message that isn't there."""
        try:
            self._check(peer, request)
        except AccessDenied as exc:
            self._tell(peer, request.code, exc)
            raise

    def unknown_code(self, peer: Peer, code: int) -> bool:
        """Note a request code that nobody serves. True: enough of them, close the connection."""
        notes = self._notes(peer)
        notes.unknown_codes += 1
        return notes.account is None and not notes.is_white and notes.unknown_codes >= UNKNOWN_CODES_MAX

    def may_touch(self, peer: Peer, topic: str, permission: int) -> bool:
        """Whether whoever spoke last on the connection has a permission: for what is sent without being asked for."""
        notes = self._notes(peer)
        if notes.account is None:
            return notes.is_white
        current = self._book.current.by_key.get(notes.account.access_key)
        if current is None:
            return False
        return current.is_white(peer.remote_address[0]) or current.may_topic(topic, permission)

    # -- the steps ----------------------------------------------------------------------------------------------------

    def _check(self, peer: Peer, request: Request) -> None:
        rule = self._table.get(request.code)
        if rule is None:
            raise AccessDenied("unlisted", f"request code {request.code} is open to nobody")
        accounts = self._book.current
        notes = peer.access
        if notes is None or notes.accounts is not accounts:
            notes = self._notes(peer)
        if notes.is_white and not rule.is_admin:
            return
        fields = request.ext_fields
        access_key = fields.get(ACCESS_KEY)
        if not access_key:
            raise AccessDenied("no_account", "No accessKey is configured")
        account = accounts.by_key.get(access_key)
        if account is None:
            self._signatures.is_genuine(self._nobody.key, fields, request.body)
            raise AccessDenied("unknown_account", f"Check signature failed for accessKey={access_key}")
        if account.is_white(peer.remote_address[0]):
            if rule.is_admin and not account.is_admin:
                raise _needs_admin(request.code, access_key)
            notes.account = account
            return
        signed = self._signatures.signed_part(account.key, fields, request.body)
        if signed is None:
            raise AccessDenied("bad_signature", f"Check signature failed for accessKey={access_key}")
        self._check_stamp(account, fields.get(STAMP), signed, request.code, notes.number)
        notes.account = account
        if rule.is_admin:
            if not account.is_admin:
                raise _needs_admin(request.code, access_key)
            return
        if account.may_everything:
            return
        for reader in rule.readers:
            for name, permission in reader(fields, request.body, self._lookup):
                if permission:
                    if not account.may_topic(name, permission):
                        raise AccessDenied("no_permission", f"No default permission for topic:{name}")
                elif not account.may_group(name):
                    raise AccessDenied("no_permission", f"No default permission for group:{name}")

    def _check_stamp(self, account: Account, stamp: str | None, signed: bytes, code: int, connection: int) -> None:
        if stamp is None:
            if HIDDEN_STAMP.match(signed, len(account.access_key.encode())):
                raise AccessDenied(
                    "replayed", f"Request refused for accessKey={account.access_key}: its stamp is hidden"
                )
            requires = account.requires_stamp
            if self._options.requires_stamp if requires is None else requires:
                raise AccessDenied(
                    "no_stamp", f"accessKey={account.access_key} may send stamped requests only, as GantryMQ's SDK does"
                )
            self.unstamped += 1
            return
        try:
            self._replay.check(account.access_key, stamp, code, connection)
        except StampRefused as exc:
            raise AccessDenied("replayed", f"Request refused for accessKey={account.access_key}: {exc}") from exc

    # -- notes and the log --------------------------------------------------------------------------------------------

    def _notes(self, peer: Peer) -> Notes:
        notes: Notes | None = peer.access
        if notes is None:
            notes = peer.access = Notes(next(self._numbers))
        if notes.accounts is not self._book.current:
            notes.accounts = self._book.current
            notes.is_white = notes.accounts.is_white(peer.remote_address[0])
        return notes

    def _tell(self, peer: Peer, code: int, exc: AccessDenied) -> None:
        """Log a refusal: each peer and reason once in a while, so that nobody fills the disk with them."""
        self.denied[exc.reason] += 1
        key = peer.remote_address[0], exc.reason
        now = time.monotonic()
        if now - self._told.get(key, -TOLD_AGAIN_S) < TOLD_AGAIN_S:
            return
        if len(self._told) >= TOLD_PEERS_MAX:
            self._told.clear()
        self._told[key] = now
        logger.warning(
            "access denied",
            extra={
                "event": "access_denied",
                "peer": peer.remote_text,
                "code": code,
                "reason": exc.reason,
                "denied_so_far": self.denied[exc.reason],
            },
        )


def account_name(peer: Peer) -> str | None:
    """The access key under which the connection last spoke, None where nobody is asked for one."""
    notes: Notes | None = peer.access
    return notes.account.access_key if notes is not None and notes.account is not None else None


def _needs_admin(code: int, access_key: str) -> AccessDenied:
    return AccessDenied("no_admin", f"Need admin permission for request code={code}, but accessKey={access_key} is not")
