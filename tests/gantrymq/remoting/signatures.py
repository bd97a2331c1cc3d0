"""The signature that a request should have."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping

from gantrymq.remoting.signature import SigningKey, signed_content


def calculate_signature(
    ext_fields: Mapping[str, str], body: bytes, secret_key: str, *, leave_out: Collection[str] = ()
) -> str:
    """Return the signature of a request. `leave_out` names further fields to skip: some clients don't sign all."""
    digest = SigningKey(secret_key).digest(signed_content(ext_fields, leave_out=leave_out), body)
    return base64.b64encode(digest).decode("ascii")
