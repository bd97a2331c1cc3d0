"""The ACL signature: clients make it, brokers check it.

A signed request carries AccessKey (and SecurityToken) among its ext fields. Signed are the *values* of all ext fields
but Signature itself, in the order of their names, followed by the body: HMAC-SHA1 under the secret key, Base64. Code,
opaque and flag are not signed, and there is no nonce: the scheme is RocketMQ's and only as strong as that.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gantrymq.remoting.command import RemotingCommand

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"


@dataclass(frozen=True, slots=True)
class Credentials:
    """An account at the brokers. The secret never shows in a repr."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def sign(self, request: RemotingCommand) -> None:
        """Put the account and the signature into the request's ext fields."""
        ext_fields = request.ext_fields
        ext_fields[ACCESS_KEY] = self.access_key
        if self.security_token is not None:
            ext_fields[SECURITY_TOKEN] = self.security_token
        ext_fields[SIGNATURE] = calculate_signature(ext_fields, request.body, self.secret_key)


def calculate_signature(
    ext_fields: Mapping[str, str], body: bytes, secret_key: str, *, leave_out: Collection[str] = ()
) -> str:
    """Return the signature of a request. `leave_out` names further fields to skip: some clients don't sign all."""
    names = sorted(name for name in ext_fields if name != SIGNATURE and name not in leave_out)
    digest = hmac.new(secret_key.encode(), "".join([ext_fields[name] for name in names]).encode(), hashlib.sha1)
    digest.update(body)
    return base64.b64encode(digest.digest()).decode()
