"""Access control for one process: each request is checked before it is queued.

    1  the address is on the global white list         -> no account needed, except for administration
    2  the request names a known account               else refused
    3  the address is on the account's own white list  -> no signature needed, and no permission except admin
    4  the signature is right                          else refused
    5  the stamp, if present or required, is valid     else refused
    6  the account has the permissions of the table    else refused

The order is RocketMQ's, with two differences: a white list gives no administration, and neither the response nor its
time shows whether an account exists.
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

from appliance.acl.account import PUB, SUB, Account
from appliance.acl.account_book import AccountBook, Accounts
from appliance.acl.needs import Lookup
from appliance.acl.permission_table import PERMISSIONS, Rule
from appliance.acl.replay import ReplayGuard, StampRefused
from appliance.acl.signature_check import SignatureCheck
from appliance.errors import BrokerError
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.signature import ACCESS_KEY, STAMP, SigningKey

logger = logging.getLogger(__name__)

UNKNOWN_CODES_MAX = 32  # of a connection without any permitted request
TEXT_CHARS_MAX = 512  # the text contains names from the request
LOGGED_PEERS_MAX = 1024
LOG_AGAIN_S = 10.0

# A signature covers the fields' values, in the order of the fields' names, but not the names. So an attacker could hide
# the stamp of a captured request under another name. The signed text then still has it right after the access key,
# because no field of the SDK sorts between the two.
HIDDEN_STAMP = re.compile(rb"[0-9]{13}\.[0-9a-f]{16}\.[0-9]+\.[0-9]")


class AccessDenied(BrokerError):
    """Refused. `reason` is the key of a counter; the text has the form that Java clients show."""

    def __init__(self, reason: str, text: str) -> None:
        remark = f"org.apache.rocketmq.acl.common.AclException: {text[:TEXT_CHARS_MAX]}"
        super().__init__(ResponseCode.NO_PERMISSION, remark)
        self.reason = reason


class Peer(Protocol):
    """The connection, as far as access control needs it."""

    access: Any

    @property
    def remote_address(self) -> tuple[str, int]: ...
    @property
    def remote_text(self) -> str: ...
    @property
    def local_host(self) -> str: ...


class Request(Protocol):
    """The request, as far as access control needs it; ext_fields must be complete, as texts."""

    @property
    def code(self) -> int: ...
    @property
    def ext_fields(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


@dataclass(slots=True)
class Notes:
    """The state that access control keeps for a connection."""

    number: int
    accounts: Accounts | None = None  # the accounts for which is_white was determined
    is_white: bool = False
    account: Account | None = None  # of the last permitted request
    unknown_codes: int = 0


@dataclass(frozen=True)
class AccessOptions:
    """requires_stamp: refuse requests that can be replayed, unless the account's own setting differs."""

    requires_stamp: bool = False
    stamp_window_ms: int = 300_000


class Access:
    """Access control of one process. Call it with each request before it is queued."""

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
        self._decoy_account = Account("", SigningKey(secrets.token_hex(16)))  # for unknown names
        self._numbers = itertools.count(1)
        self._logged_at: dict[tuple[str, str], float] = {}
        self.denied: Counter[str] = Counter()  # by reason
        self.unstamped = 0  # signed requests without a stamp: they can be replayed

    def __call__(self, peer: Peer, request: Request) -> None:
        """Return to let the request pass. Raises AccessDenied; BrokerError when the message it refers to is missing."""
        try:
            self._check(peer, request)
        except AccessDenied as exc:
            self._log(peer, request.code, exc)
            raise

    def unknown_code(self, peer: Peer, code: int) -> bool:
        """Count a request with an unsupported code. Returns True when the connection should be closed."""
        notes = self._notes(peer)
        notes.unknown_codes += 1
        return notes.account is None and not notes.is_white and notes.unknown_codes >= UNKNOWN_CODES_MAX

    def may_touch(self, peer: Peer, topic: str, permission: int) -> bool:
        """Whether the account of the connection's last request has a permission; for pushes to the client."""
        notes = self._notes(peer)
        if notes.account is None:
            return notes.is_white
        current = self._book.current.by_key.get(notes.account.access_key)
        if current is None:
            return False
        return current.is_white(peer.remote_address[0]) or current.may_topic(topic, permission)

    # -- for the fast path --------------------------------------------------------------------------------------------

    def needs_account(self, peer: Peer) -> bool:
        """Whether sends and pulls of a connection must name an account: its address is not on the global white list."""
        return not self._notes(peer).is_white

    def account_named(self, peer: Peer, access_key: str) -> tuple[Account | None, SigningKey, bool, bool]:
        """What decides about the requests of a connection that name this account, for one read event.

        Its key, whether the address is on its white list, whether it may send stamped requests only. For an unknown
        name there is no account but a key, so that the time of a refusal tells nothing (see `_check`).
        """
        account = self._book.current.by_key.get(access_key)
        if account is None:
            return None, self._decoy_account.key, False, True
        return account, account.key, account.is_white(peer.remote_address[0]), self._requires_stamp(account)

    def may_use(self, account: Account, topic: str, group: str | None) -> bool:
        """Whether it may send to a topic, or, with a group, pull from it: what the table says (PERMISSIONS)."""
        if account.may_everything:
            return True
        if group is None:
            return account.may_topic(topic, PUB)
        return account.may_topic(topic, SUB) and account.may_group(group)

    def takes_stamp(self, peer: Peer, account: Account, stamp: str, code: int) -> bool:
        """Use the stamp of a request up. False: it is not good, and nothing has changed."""
        try:
            self._replay.check(account.access_key, stamp, code, self._notes(peer).number)
        except StampRefused:
            return False
        return True

    # -- the steps ----------------------------------------------------------------------------------------------------

    def _check(self, peer: Peer, request: Request) -> None:
        rule = self._table.get(request.code)
        if rule is None:
            raise AccessDenied("unlisted", f"request code {request.code} is not open to any account")
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
            # Checking a signature takes time. With the same work for unknown names the time of a refusal does not tell
            # which accounts exist.
            self._signatures.is_genuine(self._decoy_account.key, fields, request.body)
            raise AccessDenied("unknown_account", f"Check signature failed for accessKey={access_key}")
        if account.is_white(peer.remote_address[0]):  # as in RocketMQ: neither signature nor permissions are checked
            if rule.is_admin and not account.is_admin:
                raise _needs_admin(request.code, access_key)
            notes.account = account
            return
        # The stamp is checked after the signature: otherwise forged requests could fill the table of stamps.
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
            if self._requires_stamp(account):
                raise AccessDenied(
                    "no_stamp", f"accessKey={account.access_key} may send stamped requests only, as GantryMQ's SDK does"
                )
            self.unstamped += 1
            return
        try:
            self._replay.check(account.access_key, stamp, code, connection)
        except StampRefused as exc:
            raise AccessDenied("replayed", f"Request refused for accessKey={account.access_key}: {exc}") from exc

    def _requires_stamp(self, account: Account) -> bool:
        return self._options.requires_stamp if account.requires_stamp is None else account.requires_stamp

    # -- notes and the log --------------------------------------------------------------------------------------------

    def _notes(self, peer: Peer) -> Notes:
        notes: Notes | None = peer.access
        if notes is None:
            notes = peer.access = Notes(next(self._numbers))
        if notes.accounts is not self._book.current:
            notes.accounts = self._book.current
            notes.is_white = notes.accounts.is_white(peer.remote_address[0])
        return notes

    def _log(self, peer: Peer, code: int, exc: AccessDenied) -> None:
        """Count and log a refusal; at most one line in LOG_AGAIN_S for each peer and reason."""
        self.denied[exc.reason] += 1
        key = peer.remote_address[0], exc.reason
        now = time.monotonic()
        if now - self._logged_at.get(key, -LOG_AGAIN_S) < LOG_AGAIN_S:
            return
        if len(self._logged_at) >= LOGGED_PEERS_MAX:
            self._logged_at.clear()
        self._logged_at[key] = now
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
    """The access key of the connection's last permitted request, None without one."""
    notes: Notes | None = peer.access
    return notes.account.access_key if notes is not None and notes.account is not None else None


def _needs_admin(code: int, access_key: str) -> AccessDenied:
    return AccessDenied("no_admin", f"Need admin permission for request code={code}, but accessKey={access_key} is not")
