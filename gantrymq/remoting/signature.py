"""The ACL signature: clients make it, brokers check it.

A signed request carries AccessKey (and SecurityToken) among its ext fields. Signed are the *values* of all ext fields
but Signature itself, in the order of their names, followed by the body: HMAC-SHA1 under the secret key, Base64. Code,
opaque and flag are not signed, and there is no nonce: the scheme is RocketMQ's and only as strong as that.

GantryMQ's clients close that gap in RocketMQ's own terms. They add one more ext field, which is signed like all others
and which brokers that don't know it ignore:

    RequestStamp = <ms since the epoch>.<random id of the connection>.<number of the request on it>.<request code>

A GantryMQ broker refuses a stamp that is too old, whose number it has seen on that connection, that comes over another
connection, that stands on another request code (appliance/acl/replay.py), or that hides under another name: what is
signed begins with access key and stamp, so its place tells. Each broker remembers only what it has seen itself.
"""

from __future__ import annotations

import base64
import itertools
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gantrymq.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path  # loaded where it is used: it takes longer to import than most of the SDK

    from gantrymq.remoting.command import RemotingCommand

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"
STAMP = "RequestStamp"

ACCESS_KEY_VARIABLE = "GANTRYMQ_ACCESS_KEY"
SECRET_KEY_VARIABLE = "GANTRYMQ_SECRET_KEY"
CREDENTIALS_FILE_VARIABLE = "GANTRYMQ_CREDENTIALS"

KEY_CHARS_MIN = 7  # of both keys; RocketMQ: "longer than 6"
_BLOCK_BYTES = 64  # of SHA-1; HMAC pads its key to it (RFC 2104)
_INNER_PAD = bytes(value ^ 0x36 for value in range(256))
_OUTER_PAD = bytes(value ^ 0x5C for value in range(256))


class SigningKey:
    """HMAC-SHA1 under one secret, its key already worked in: half the time of `hmac.digest` for a small request.

    blocks: the key with the inner and with the outer padding, for who works it in elsewhere. As secret as the key.
    """

    __slots__ = ("_inner", "_outer", "blocks")

    def __init__(self, secret_key: str) -> None:
        import hashlib  # loads OpenSSL's; clients without an account do without it

        key = secret_key.encode()
        if len(key) > _BLOCK_BYTES:
            key = hashlib.sha1(key, usedforsecurity=False).digest()
        key = key.ljust(_BLOCK_BYTES, b"\0")
        self.blocks: tuple[bytes, bytes] = key.translate(_INNER_PAD), key.translate(_OUTER_PAD)
        self._inner, self._outer = (hashlib.sha1(block, usedforsecurity=False) for block in self.blocks)

    def digest(self, content: bytes, body: bytes = b"") -> bytes:
        """The 20 bytes of HMAC-SHA1 over content and body."""
        inner = self._inner.copy()
        inner.update(content)
        if body:
            inner.update(body)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()


class Stamper:
    """Makes the stamps of one connection."""

    __slots__ = ("_id", "_next")

    def __init__(self) -> None:
        self._id = os.urandom(8).hex()
        self._next = itertools.count(1).__next__

    def stamp(self, code: int) -> str:
        """A stamp for a request of that code, to be sent on this connection before any later one."""
        return f"{time.time_ns() // 1_000_000}.{self._id}.{self._next()}.{code}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """An account at the brokers. The secret never shows in a repr.

    stamped: protect requests against being recorded and sent again (see the module). Brokers that don't know stamps
    ignore them.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)
    stamped: bool = True
    _key: SigningKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", SigningKey(self.secret_key))

    @classmethod
    def from_file(cls, path: Path | str) -> Credentials:
        """An account from a file of `accessKey: ...` and `secretKey: ...` lines (RocketMQ's tools.yml is one).

        Raises ConfigError, which names what is missing and never shows a value.
        """
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123 - see the imports
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
            raise ConfigError(f"credentials file {path}: {reason}") from exc
        found = {}
        for line in lines:
            name, separator, value = line.partition(":")
            if separator and not name.lstrip().startswith("#"):
                found[name.strip()] = _unquoted(value.strip())
        missing = [name for name in ("accessKey", "secretKey") if not found.get(name)]
        if missing:
            raise ConfigError(f"credentials file {path}: there is no line {missing[0]}: ...")
        return cls(found["accessKey"], found["secretKey"], found.get("securityToken") or None)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Credentials | None:
        """The account that the environment names: GANTRYMQ_CREDENTIALS (a file), else GANTRYMQ_ACCESS_KEY and
        GANTRYMQ_SECRET_KEY; None when it names none. Raises ConfigError when it names half of one.
        """
        environment = os.environ if environment is None else environment
        if path := environment.get(CREDENTIALS_FILE_VARIABLE):
            return cls.from_file(path)
        access_key, secret_key = environment.get(ACCESS_KEY_VARIABLE), environment.get(SECRET_KEY_VARIABLE)
        if not access_key and not secret_key:
            return None
        if not access_key or not secret_key:
            absent = SECRET_KEY_VARIABLE if access_key else ACCESS_KEY_VARIABLE
            raise ConfigError(f"{absent} is missing: an account needs an access key and a secret key")
        return cls(access_key, secret_key)

    @classmethod
    def of_key(cls, access_key: str, key: SigningKey) -> Credentials:
        """An account for one that has its key worked in already, and not its secret."""
        found = cls(access_key, "")
        object.__setattr__(found, "_key", key)
        return found

    def sign(self, request: RemotingCommand, stamper: Stamper | None = None) -> None:
        """Put account, stamp and signature into the request's ext fields."""
        ext_fields = request.ext_fields
        ext_fields[ACCESS_KEY] = self.access_key
        if self.security_token is not None:
            ext_fields[SECURITY_TOKEN] = self.security_token
        if stamper is not None and self.stamped:
            ext_fields[STAMP] = stamper.stamp(int(request.code))
        digest = self._key.digest(signed_content(ext_fields), request.body)
        ext_fields[SIGNATURE] = base64.b64encode(digest).decode("ascii")


def signed_content(ext_fields: Mapping[str, str], *, leave_out: Collection[str] = ()) -> bytes:
    """The part of what is signed that stands in the header."""
    names = sorted(name for name in ext_fields if name != SIGNATURE and name not in leave_out)
    return "".join([ext_fields[name] for name in names]).encode()


def _unquoted(value: str) -> str:
    """A YAML scalar of one line without its quotes."""
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
