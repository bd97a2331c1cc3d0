"""Errors of the data source.

ReadFailed              a range can't be read; the text names topic, queue and offset
└─ MessagesLost         messages of a range were deleted before they were read, or are damaged
"""

from __future__ import annotations

from gantrymq.errors import GantryError


class ReadFailed(GantryError):
    """A range can't be read; the text says why and what to do."""


class MessagesLost(ReadFailed):
    """Messages were deleted before they were read, or are damaged; the text names topic, queue and offsets."""
