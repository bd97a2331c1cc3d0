"""What the answer to a stored message waits for: the disk (SYNC_FLUSH), a slave (SYNC_MASTER), both, or nothing."""

from __future__ import annotations

from collections.abc import Callable

from appliance.broker.replication.master.slaves import SlaveService
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.codes import ResponseCode
from store.base.config import MessageStoreConfig
from store.message_store import MessageStore


class PutWaits:
    """One broker's. is_needed: false when answers go at once; it does not change while the broker runs."""

    def __init__(
        self, store: MessageStore, slaves: SlaveService, config: BrokerConfig, store_config: MessageStoreConfig
    ) -> None:
        self._store = store
        self._slaves = slaves
        self._disk = store_config.is_sync_flush
        self._slave = config.is_sync_master
        self.is_needed = self._disk or self._slave

    def when_stored(self, end_offset: int, callback: Callable[[ResponseCode], None]) -> None:
        """Call back once all is there that is waited for below the offset.

        SUCCESS, or the code of what is missing: FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE; the
        message is stored all the same. Disk and slaves work at the same time; a missing slave is told first.
        """
        if not self._slave:
            self._when_flushed(end_offset, callback)
        elif not self._disk:
            self._slaves.when_copied(end_offset, callback)
        else:
            both = _Both(callback)
            self._slaves.when_copied(end_offset, both.copied)
            self._when_flushed(end_offset, both.flushed)

    def _when_flushed(self, end_offset: int, callback: Callable[[ResponseCode], None]) -> None:
        self._store.when_flushed(
            end_offset,
            lambda is_on_disk: callback(ResponseCode.SUCCESS if is_on_disk else ResponseCode.FLUSH_DISK_TIMEOUT),
        )


class _Both:
    """One answer that waits for disk and slave."""

    __slots__ = ("_callback", "_copied", "_flushed")

    def __init__(self, callback: Callable[[ResponseCode], None]) -> None:
        self._callback = callback
        self._copied: ResponseCode | None = None
        self._flushed: ResponseCode | None = None

    def copied(self, code: ResponseCode) -> None:
        self._copied = code
        self._answer()

    def flushed(self, code: ResponseCode) -> None:
        self._flushed = code
        self._answer()

    def _answer(self) -> None:
        if self._copied is not None and self._flushed is not None:
            self._callback(self._copied if self._copied is not ResponseCode.SUCCESS else self._flushed)
