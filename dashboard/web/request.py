"""A request as Daphne passes it to the application, with its body in memory and not parsed."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from daphne.http_protocol import WebRequest as DaphneRequest


class WebRequest(DaphneRequest):
    """The channel says how large the body may become."""

    def __init__(self, channel: Any, queued: Any = False) -> None:
        super().__init__(channel, queued, parsePOSTFormSubmission=False)  # the application does it, off the loop

    def gotLength(self, length: int | None) -> None:
        self.content = BytesIO()  # never a file: the channel bounds it

    def handleContentChunk(self, data: bytes) -> None:
        if self.channel.takes(self.content.tell() + len(data)):
            self.content.write(data)
