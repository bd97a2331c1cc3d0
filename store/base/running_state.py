"""Why a store may refuse: its running flags, and the rest it takes after an append that was far too slow."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable

from store.base.results import PutMessageStatus

logger = logging.getLogger(__name__)


class RunningFlags(enum.IntFlag):
    """Why a store may refuse (RocketMQ: RunningFlags, with one more)."""

    NOT_READABLE = 1
    NOT_WRITEABLE = 2
    QUEUE_ERROR = 4
    INDEX_ERROR = 8
    DISK_FULL = 16
    SYNC_ERROR = 32  # a sync failed: what the disk has is not known until a restart


class RunningState:
    """Flags and refusals of one store. A put looks at `refusal`, and asks `still_refusing` only when there is one."""

    __slots__ = (
        "_busy_s",
        "_busy_until",
        "_monotonic",
        "flags",
        "is_copy",
        "is_held",
        "is_readable",
        "lacks_copies",
        "refusal",
        "rival",
        "serving",
    )

    def __init__(self, page_cache_busy_ms: int, monotonic: Callable[[], float]) -> None:
        self.flags = RunningFlags(0)
        self.is_copy = False  # the log is a copy of another broker's: no message is put here
        self.is_held = False  # no message is put for now: another broker is to take over, or has
        self.lacks_copies = ""  # no message is put while too few others have the log; says how many do
        self.rival = ""  # no message is put: another broker has as good a claim to this log; says which
        self.serving = False
        self.is_readable = False
        self.refusal: PutMessageStatus | None = PutMessageStatus.SERVICE_NOT_AVAILABLE
        self._busy_s = page_cache_busy_ms / 1000
        self._busy_until = 0.0
        self._monotonic = monotonic

    @property
    def is_writeable(self) -> bool:
        return self.refusal is not PutMessageStatus.SERVICE_NOT_AVAILABLE

    def serve(self, serving: bool) -> None:
        """Accept messages from now on, or no longer."""
        self.serving = serving
        self._update()

    def hold(self, held: bool) -> None:
        """Refuse messages while held; all else goes on, and it is no trouble of the store."""
        self.is_held = held
        self._update()

    def require_copies(self, lacking: str) -> None:
        """Refuse messages as long as this says that copies are lacking; "" when they are there."""
        if lacking != self.lacks_copies:
            self.lacks_copies = lacking
            self._update()

    def contest(self, rival: str) -> None:
        """Refuse messages from now on: another broker has as good a claim to this log."""
        self.rival = rival
        self._update()

    def set_flag(self, flag: RunningFlags, on: bool) -> None:
        """Raise or lower a reason to refuse."""
        self.flags = self.flags | flag if on else self.flags & ~flag
        self._update()

    def note_append(self, elapsed_s: float) -> None:
        """Note how long an append took. RocketMQ refuses messages that come while one lasts longer than the limit.

        Here no request is read meanwhile: they wait in the sockets and are served afterwards. So messages are refused
        for as long as the append was over the limit, and at most for the limit itself.
        """
        if elapsed_s > self._busy_s:
            self._busy_until = self._monotonic() + min(elapsed_s - self._busy_s, self._busy_s)
            self._update()
            logger.warning("slow append", extra={"event": "slow_append", "seconds": round(elapsed_s, 3)})

    def is_page_cache_busy(self) -> bool:
        """Say if an append has just taken too long: the disk can't keep up, senders should wait."""
        return self._monotonic() < self._busy_until

    def still_refusing(self, though_full: bool = False) -> PutMessageStatus | None:
        """Return why a put is refused; being busy ends by itself. though_full: not when that is because a disk is
        nearly full, and for nothing else."""
        if self.refusal is PutMessageStatus.OS_PAGE_CACHE_BUSY:
            self._update()
        return None if though_full and self.refuses_for_space_alone else self.refusal

    @property
    def refuses_for_space_alone(self) -> bool:
        """Whether messages are refused because a disk is nearly full, and for nothing else."""
        return not self._is_refusing and self.flags & ~RunningFlags.NOT_READABLE == RunningFlags.DISK_FULL

    @property
    def _is_refusing(self) -> bool:
        """Whatever the flags say."""
        return not self.serving or self.is_copy or self.is_held or bool(self.lacks_copies or self.rival)

    def _update(self) -> None:
        self.is_readable = self.serving and not self.flags & RunningFlags.NOT_READABLE
        if self._is_refusing or self.flags & ~RunningFlags.NOT_READABLE:
            self.refusal = PutMessageStatus.SERVICE_NOT_AVAILABLE
        else:
            self.refusal = PutMessageStatus.OS_PAGE_CACHE_BUSY if self.is_page_cache_busy() else None
