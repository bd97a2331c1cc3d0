"""What the appliance's processes raise; the root is gantrymq.errors.GantryError.

GantryError
├─ BrokerError        a request that can't be served, with the ResponseCode for the client
└─ StartError         a process can't start; the text is one sentence with the fix
"""

from __future__ import annotations

from gantrymq.errors import GantryError
from gantrymq.remoting.codes import ResponseCode


class BrokerError(GantryError):
    """An expected refusal. `code` goes to the client, the text becomes the remark; ext_fields for programs."""

    def __init__(self, code: ResponseCode | int, remark: str, ext_fields: dict[str, str] | None = None) -> None:
        super().__init__(remark)
        self.code = int(code)
        self.ext_fields = ext_fields


class StartError(GantryError):
    """A process can't start; the text says why and what to do, in one sentence."""
