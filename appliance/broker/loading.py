"""What a broker reads when it starts: its tables, and its store, which recovers."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from appliance.acl.account_file import AccountFileError
from appliance.broker.epochs.settling import check_role, settle_epochs
from appliance.broker.replication.in_sync_file import InSyncFile
from appliance.errors import StartError
from appliance.process.json_file import StateFileError
from store.startup.format_stamp import STORE, check_format

if TYPE_CHECKING:  # it calls what is here
    from appliance.broker.controller import BrokerController

logger = logging.getLogger(__name__)


def load(parts: BrokerController) -> None:
    """Read the tables and recover the store. Blocking. StartError when the folder is not this broker's to open."""
    check_format(parts.store_config.root, STORE)  # before its tables are read: they may be newer, too
    standing = parts.standing.load()
    parts.copy_mark.check(parts.config)
    check_role(parts.config, standing)
    parts.in_sync_file.load()
    if parts.accounts is not None:
        try:
            parts.accounts.load()
        except AccountFileError as exc:
            raise StartError(f"accounts can't be read: {exc}") from exc
    parts.topics.load()
    parts.groups.load()
    parts.offsets.load()
    parts.filters.load()
    _set_filter_bitmaps(parts)
    parts.store.load(cut_to=standing.cut_to)
    is_cut = standing.cut_to is not None or parts.store.max_physical_offset < parts.in_sync_file.record.confirmed
    parts.member.open(is_wanted=parts.register is not None, is_cut=is_cut)
    if parts.register is not None:
        parts.register.group = parts.member.membership.group
    settle_epochs(parts.standing, parts.config, parts.store, parts.offsets, parts.timer)
    if standing.cut_to is not None:
        _end_in_sync(parts.in_sync_file, parts.store.max_physical_offset)
    parts.pop.load()
    parts.schedule.load()
    parts.timer.load()


def _end_in_sync(file: InSyncFile, end: int) -> None:
    """What was confirmed behind the cut is given up."""
    record = file.record
    try:
        file.keep(dataclasses.replace(record, confirmed=record.confirmed_of(end), alone=False))
    except StateFileError as exc:
        raise StartError(f"what was confirmed can't be put on record: {exc}") from exc


def _set_filter_bitmaps(parts: BrokerController) -> None:
    """From here on, and while the store recovers, messages get filter bits, if that is wanted."""
    if not parts.config.calc_filter_bitmap_enable:
        return
    if parts.store_config.consume_queue_ext_enable:
        parts.store.bitmap_of = parts.filters.bitmap_of
    else:
        logger.warning(
            "enableCalcFilterBitMap has no effect without enableConsumeQueueExt: the bits have no storage",
            extra={"event": "filter_bitmap_ignored"},
        )
