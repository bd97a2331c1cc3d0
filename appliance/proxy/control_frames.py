"""How many frames that carry no request a connection may send: pings, settings, resets and the like cost the peer nine
bytes, and the proxy much more. Decided here, without I/O."""

from __future__ import annotations

from enum import Enum

CONTROL_BURST, CONTROL_A_SECOND = 300.0, 100.0
WINDOW_BURST, WINDOW_A_SECOND = 500.0, 100.0
WINDOWS_A_MESSAGE = 4  # clients open windows with what they read
PINGS_A_MESSAGE = 1  # Go's client measures its line with a ping for what it reads
YOUNG_S = 1.0  # a stream that is reset at this age was opened to be reset


class Frame(Enum):
    """What a frame without a request or data is."""

    PING = "ping"
    RESET = "reset"
    WINDOW = "window"
    OTHER = "other"


class Allowance:
    """So many at once, and so many a second later."""

    __slots__ = ("_a_second", "_at", "_burst", "_left")

    def __init__(self, burst: float, a_second: float, now_s: float) -> None:
        self._burst, self._a_second = burst, a_second
        self._left, self._at = burst, now_s

    def takes(self, now_s: float) -> bool:
        """Count one; False when there are too many."""
        self.earn((now_s - self._at) * self._a_second)
        self._at = now_s
        self._left -= 1
        return self._left >= 0

    def earn(self, more: float) -> None:
        self._left = min(self._burst, self._left + more)


class ControlFrames:
    """Of one connection."""

    __slots__ = ("_control", "_pings", "_sent", "_window")

    def __init__(self, now_s: float) -> None:
        self._control = Allowance(CONTROL_BURST, CONTROL_A_SECOND, now_s)
        self._pings = Allowance(CONTROL_BURST, CONTROL_A_SECOND, now_s)
        self._window = Allowance(WINDOW_BURST, WINDOW_A_SECOND, now_s)
        self._sent = 0

    def allows(self, frame: Frame, now_s: float, *, sent: int = 0, age_s: float = 0.0) -> bool:
        """Whether the connection may go on after this frame. sent: messages sent on it so far; age_s: of the frame's
        stream."""
        if more := sent - self._sent:
            self._window.earn(more * WINDOWS_A_MESSAGE)
            self._pings.earn(more * PINGS_A_MESSAGE)
            self._sent = sent
        if frame is Frame.WINDOW:
            return self._window.takes(now_s)
        if frame is Frame.PING:
            return self._pings.takes(now_s)
        return (frame is Frame.RESET and age_s >= YOUNG_S) or self._control.takes(now_s)
