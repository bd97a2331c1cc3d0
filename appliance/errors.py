"""What the appliance's processes raise; the root is gantrymq.errors.GantryError.

GantryError
├─ BrokerError        a request that can't be served, with the ResponseCode for the client
└─ StartError         a process can't start; the text is one sentence with the fix
"""

from __future__ import annotations

from gantrymq.errors import GantryError
from gantrymq.remoting.codes import ResponseCode


class BrokerError(GantryError):
    """An expected refusal. `code` goes to the client, the text becomes the remark."""

    def __init__(self, code: ResponseCode | int, remark: str) -> None:
        super().__init__(remark)
        self.code = int(code)


class StartError(GantryError):
    """A process can't start; the text says why and what to do, in one sentence."""
