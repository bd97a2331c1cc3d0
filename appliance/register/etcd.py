"""A client of etcd's JSON gateway (/v3), 3.4 and later: read a prefix, and change keys by compare-and-swap.

Each call has a deadline, and each try at a member a shorter one, so a member that is frozen costs a part of it. Reads
are linearizable (etcd's default) and go on to the next member. A transaction goes on only as long as no member can have
executed it: afterwards it raises OutcomeUnknown, and the caller reads what became of it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

from appliance.register.http_call import Answer, CallFailed, Endpoint, post
from gantrymq.errors import ConfigError, GantryError

DEADLINE_S = 2.0  # of a call; an election of etcd takes 1.6 - 2.1 s, the caller asks again
TRY_S = 0.7  # of a try at one member
CLIENT_PORT = 2379
TOKEN_TROUBLES = ("invalid auth token", "revision of auth store is old")
COMPACTED = "has been compacted"
ALARM = "alarm:"
ANOTHER = "another cluster of etcd answers"


class EtcdError(GantryError):
    """etcd did not do it; the text says why. Nothing was changed."""


class OutcomeUnknown(EtcdError):
    """A transaction was sent and not answered: it may have been executed, or may still be."""


@dataclass(frozen=True, slots=True)
class Value:
    """A key's value, and the revision of etcd at which it was last changed."""

    data: bytes
    revision: int


@dataclass(frozen=True, slots=True)
class Is:
    """Compares: the key was last changed at this revision; 0: it is not there. data: instead of that, its value."""

    key: str
    revision: int = 0
    data: bytes | None = None

    def to_dict(self) -> dict[str, Any]:
        if self.data is not None:
            return {"key": _text(self.key), "target": "VALUE", "result": "EQUAL", "value": _bytes(self.data)}
        return {"key": _text(self.key), "target": "MOD", "result": "EQUAL", "mod_revision": self.revision}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All keys below a prefix at one revision, without the prefix. cluster_id: of the etcd that answered; an etcd that
    was restored from a backup has another one."""

    revision: int
    values: Mapping[str, Value]
    cluster_id: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """alarms: of all members, by name. size: of the database of the member that answered, bytes."""

    revision: int
    size: int
    alarms: frozenset[str]


class EtcdClient:
    """Members are asked in turn, beginning with the one that answered last. reread: endpoints and password as the files
    have them now; the call after one that trusted no certificate, or was not signed in, begins with it. ConfigError."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        user: str = "",
        password: str = "",
        deadline_s: float = DEADLINE_S,
        reread: Callable[[], tuple[Sequence[Endpoint], str]] | None = None,
    ) -> None:
        self._reread = reread
        self._may_be_old = False  # what the files had
        self._endpoints = list(endpoints)
        self._user, self._password = user, password
        self._deadline_s = deadline_s
        self._token = ""

    async def read(self, prefix: str) -> Snapshot:
        """All keys below a prefix. EtcdError."""
        document = {"key": _text(prefix), "range_end": _text(prefix[:-1] + chr(ord(prefix[-1]) + 1))}
        answer = await self._call("/v3/kv/range", document, is_read=True)
        return _snapshot(prefix, answer, answer.get("kvs", []))

    async def change(
        self,
        compare: Sequence[Is],
        puts: Mapping[str, bytes],
        deletes: Sequence[str] = (),
        *,
        cluster_id: int = 0,
    ) -> int | None:
        """Put and delete keys if all compare; return the revision, None when one does not. A key that ends with '/'
        deletes all below it. cluster_id: of the etcd whose revisions these are. EtcdError, OutcomeUnknown."""
        document = {
            "compare": [each.to_dict() for each in compare],
            "success": [
                *({"request_put": {"key": _text(key), "value": _bytes(data)}} for key, data in puts.items()),
                *({"request_delete_range": _range(key)} for key in deletes),
            ],
        }
        answer = await self._call("/v3/kv/txn", document, is_read=False)
        if cluster_id and _cluster_id(answer) not in (0, cluster_id):
            raise OutcomeUnknown(f"{ANOTHER}: it was restored from a backup, or replaced")
        return _revision(answer) if answer.get("succeeded") else None

    async def health(self) -> Health:
        """As the first member that answers has it. EtcdError."""
        answer = await self._call("/v3/maintenance/status", {}, is_read=True)
        told = [str(each) for each in answer.get("errors", [])]
        alarms = frozenset(each.partition(ALARM)[2].strip() for each in told if ALARM in each)
        return Health(_revision(answer), int(answer.get("dbSize", 0)), alarms)

    async def has_kept(self, key: str, revision: int) -> bool:
        """Whether etcd can still say what the key was at that revision. EtcdError."""
        document = {"key": _text(key), "revision": revision, "count_only": True}
        try:
            await self._call("/v3/kv/range", document, is_read=True)
        except EtcdError as exc:
            if COMPACTED in str(exc):
                return False
            raise
        return True

    # -- one call -----------------------------------------------------------------------------------------------------

    async def _call(self, path: str, document: Any, *, is_read: bool) -> Mapping[str, Any]:
        deadline = asyncio.get_running_loop().time() + self._deadline_s
        body, failures = orjson.dumps(document), list[str]()
        await self._as_files_are_now()
        while True:
            for endpoint in list(self._endpoints):
                try:
                    answer = await self._try(endpoint, path, body, deadline)
                except CallFailed as exc:
                    self._may_be_old |= isinstance(exc.__cause__, ssl.SSLCertVerificationError)
                    members = self._endpoints
                    if endpoint in members:  # another call may have read the files anew
                        members.append(members.pop(members.index(endpoint)))
                    if exc.was_sent and not is_read:
                        raise OutcomeUnknown(f"etcd may have done it or not: {exc}") from exc
                    failures.append(str(exc))
                    continue
                return answer
            if asyncio.get_running_loop().time() + TRY_S > deadline:
                raise EtcdError(f"no member of etcd answers: {'; '.join(dict.fromkeys(failures))}")
            await asyncio.sleep(TRY_S / 7)

    async def _as_files_are_now(self) -> None:
        if not self._may_be_old or self._reread is None:
            return
        with contextlib.suppress(ConfigError):  # a file that is just replaced: the next refusal leads here again
            endpoints, self._password = await asyncio.to_thread(self._reread)
            self._endpoints = list(endpoints)
        self._may_be_old = False

    async def _try(self, endpoint: Endpoint, path: str, body: bytes, deadline: float) -> Mapping[str, Any]:
        """Ask one member, after signing in if it must be, and anew when its token is not known any more."""
        for _ in range(2):
            if self._user and not self._token:
                self._token = await self._sign_in(endpoint, deadline)
            headers = {"Authorization": self._token} if self._token else {}
            answer = await post(endpoint, path, body, headers, self._try_until(deadline))
            if answer.status == 200:
                return _document(endpoint, answer)
            problem = _problem(answer)
            if not (self._token and any(text in problem for text in TOKEN_TROUBLES)):
                break
            self._token = ""
        if answer.status >= 500 and answer.status != 501:  # no leader, or it stops: another one may do it
            raise CallFailed(f"{endpoint}: {problem}", was_sent="no leader" not in problem)
        raise EtcdError(f"{endpoint} rejects the request: {problem}")

    async def _sign_in(self, endpoint: Endpoint, deadline: float) -> str:
        body = orjson.dumps({"name": self._user, "password": self._password})
        try:
            answer = await post(endpoint, "/v3/auth/authenticate", body, {}, self._try_until(deadline))
        except CallFailed as exc:
            raise CallFailed(str(exc), was_sent=False) from exc  # the request itself was not
        if answer.status != 200:
            self._may_be_old = True
            raise EtcdError(f"{endpoint} rejects etcdUser={self._user}: {_problem(answer)}")
        return str(_document(endpoint, answer).get("token", ""))

    @staticmethod
    def _try_until(deadline: float) -> float:
        return min(deadline, asyncio.get_running_loop().time() + TRY_S)


def endpoints_of(text: str, ca_file: str = "") -> list[Endpoint]:
    """The members that a setting names: http://HOST:PORT or https://…, with ','. ConfigError. Reads ca_file."""
    found, tls = list[Endpoint](), None
    for word in filter(None, (each.strip() for each in text.split(","))):
        parts = urlsplit(word)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise ConfigError(f"etcdEndpoints={word}: use http://HOST:PORT or https://HOST:PORT, with ',' between them")
        try:
            port = parts.port or CLIENT_PORT
            if parts.scheme == "https" and tls is None:
                tls = ssl.create_default_context(cafile=ca_file or None)
        except (ValueError, OSError) as exc:
            raise ConfigError(f"etcdEndpoints={word}, etcdCaFile={ca_file or 'none'}: {exc}") from exc
        found.append(Endpoint(parts.hostname, port, tls if parts.scheme == "https" else None))
    return found


def _document(endpoint: Endpoint, answer: Answer) -> Mapping[str, Any]:
    try:
        document = orjson.loads(answer.body)
    except orjson.JSONDecodeError as exc:
        raise CallFailed(f"{endpoint}: the answer is not JSON", was_sent=True) from exc
    if not isinstance(document, dict):
        raise CallFailed(f"{endpoint}: the answer is not a JSON object", was_sent=True)
    return document


def _problem(answer: Answer) -> str:
    try:
        document = orjson.loads(answer.body)
        text = str(document.get("message") or document.get("error") or answer.body[:200])
    except (orjson.JSONDecodeError, AttributeError):
        text = answer.body[:200].decode("utf-8", "replace")
    return f"{text} (HTTP {answer.status})"


def _revision(document: Mapping[str, Any]) -> int:
    return int(document.get("header", {}).get("revision", 0))


def _cluster_id(document: Mapping[str, Any]) -> int:
    return int(document.get("header", {}).get("cluster_id", 0))


def _snapshot(prefix: str, answer: Mapping[str, Any], rows: Any) -> Snapshot:
    values = {}
    try:
        for row in rows:
            key = base64.b64decode(row["key"]).decode().removeprefix(prefix)
            values[key] = Value(base64.b64decode(row.get("value", "")), int(row["mod_revision"]))
    except (KeyError, TypeError, ValueError, binascii.Error) as exc:
        raise EtcdError(f"etcd's answer is not understood: {exc!r}") from exc
    return Snapshot(_revision(answer), values, _cluster_id(answer))


def _range(key: str) -> dict[str, str]:
    if not key.endswith("/"):
        return {"key": _text(key)}
    return {"key": _text(key), "range_end": _text(key[:-1] + "0")}  # '0' follows '/'


def _text(key: str) -> str:
    return _bytes(key.encode())


def _bytes(data: bytes) -> str:
    return base64.b64encode(data).decode()
