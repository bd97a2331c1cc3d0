"""Sends encoded in advance, for loads that must not wait for their own client: only digits are patched in place.

A ring contains more frames than may be in flight, all of the same size, so the next n frames are sent with one call, or
two where the ring wraps around.
"""

from __future__ import annotations

from appliance.bench.frames import (
    DIGITS,
    DIGITS_MARK,
    OPAQUE_START,
    key_prefix,
    message_properties,
    positions,
    send_frame,
)
from gantrymq.remoting.codes import RequestCode

_RING_FRAMES_MIN = 64


class FrameRing:
    """Send requests of one connection, patched and handed out in order."""

    def __init__(self, frames: list[bytes]) -> None:
        self.frame_bytes = len(frames[0])
        assert all(len(frame) == self.frame_bytes for frame in frames)
        self._buffer = bytearray(b"".join(frames))
        self._view = memoryview(self._buffer)
        self._frames = len(frames)
        self._next = 0
        self._number = OPAQUE_START
        self._opaque_at = frames[0].index(b'"opaque":') + len(b'"opaque":')
        (self._key_at,) = positions(frames[0], DIGITS_MARK)

    def take(self, count: int) -> list[memoryview]:
        """The next `count` frames, ready to send, as one or more views. Valid until the ring has turned once."""
        views = []
        while count:
            first = self._next
            run = min(count, self._frames - first)
            for index in range(first, first + run):
                self._patch(index * self.frame_bytes)
            views.append(self._view[first * self.frame_bytes : (first + run) * self.frame_bytes])
            self._next = (first + run) % self._frames
            count -= run
        return views

    def _patch(self, start: int) -> None:
        buffer, number = self._buffer, self._number
        digits = b"%d" % number
        at = start + self._opaque_at
        buffer[at : at + DIGITS] = digits
        at = start + self._key_at
        buffer[at : at + DIGITS] = digits
        self._number = number + 1


def send_ring(topic: str, queue_ids: list[int], body_bytes: int, in_flight: int) -> FrameRing:
    """Single sends (310) as the Java client writes them, taking turns through the queues."""
    count = _ring_size(in_flight, len(queue_ids))
    prefix, body = key_prefix(), bytes(body_bytes)
    frames = [
        send_frame(
            RequestCode.SEND_MESSAGE_V2, topic, queue_ids[index % len(queue_ids)], message_properties(prefix), body
        )
        for index in range(count)
    ]
    return FrameRing(frames)


def _ring_size(in_flight: int, queue_count: int) -> int:
    least = max(in_flight + 1, _RING_FRAMES_MIN)
    return queue_count * -(-least // queue_count)
