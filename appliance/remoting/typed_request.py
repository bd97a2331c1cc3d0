"""A request of a hot path, read straight into typed fields: what lanes and answers need of it."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from appliance.remoting.header_fields import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from gantrymq.remoting.command import JSON, ONEWAY_FLAG, RemotingCommand

Int = Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)]
Long = Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)]


class TypedRequest(msgspec.Struct, gc=False, kw_only=True):
    """Behaves as a RemotingCommand where lanes and answers look at it. Its header was JSON."""

    code: Long
    opaque: Long
    flag: Long
    version: Long = 0
    body: bytes = b""  # always set after decoding: no header can bring its own

    serialize_type: ClassVar[int] = JSON

    @property
    def is_oneway(self) -> bool:
        return self.flag & ONEWAY_FLAG != 0

    def reply(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> RemotingCommand:
        """The answer to this request."""
        request = RemotingCommand(self.code, {}, b"", None, self.opaque, self.flag, "", self.version, JSON)
        return request.reply(code, remark, ext_fields, body)
