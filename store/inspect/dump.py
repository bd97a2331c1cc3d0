"""Contents of a store folder as rows: plain dictionaries with RocketMQ's names, ready to be printed or made JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

from gantrymq.message import ids
from gantrymq.message import properties as names
from gantrymq.message.record import body_crc
from store.inspect.ext_reader import is_address
from store.inspect.folder import StoreFolder, index_hash
from store.inspect.log_reader import LogBreak, LogRecord
from store.inspect.queue_reader import Unit

Row = dict[str, Any]


class Selection(NamedTuple):
    """Which rows. Offsets: physical ones for records and index entries, queue offsets for units; `end` is exclusive."""

    begin: int | None = None
    end: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    key: str | None = None

    def has_offset(self, offset: int) -> bool:
        return (self.begin is None or offset >= self.begin) and (self.end is None or offset < self.end)


def dump_records(folder: StoreFolder, selection: Selection, *, with_body: bool = False) -> Iterator[Row]:
    """Yield records by index (key), by queue (topic and queue), or by reading the log; and the log's breaks then."""
    if selection.key is not None and selection.topic is not None and folder.indexes():
        yield from _records_by_key(folder, selection, with_body)
    elif selection.topic is not None and selection.key is None and _has_queues(folder, selection):
        yield from _records_by_queue(folder, selection, with_body)
    else:
        yield from _records_by_log(folder, selection, with_body)


def record_row(found: LogRecord, *, with_body: bool) -> Row:
    fields = found.fields
    body = found.body
    row: Row = {
        "physicalOffset": found.physical_offset,
        "storeSize": fields.size_bytes,
        "topic": fields.topic.decode("utf-8", "replace"),
        "queueId": fields.queue_id,
        "queueOffset": fields.queue_offset,
        "msgId": ids.offset_message_id(fields.store_host, found.physical_offset),
        "storeTimestamp": fields.store_timestamp,
        "storeHost": _host(fields.store_host),
        "bornTimestamp": fields.born_timestamp,
        "bornHost": _host(fields.born_host),
        "sysFlag": fields.sys_flag,
        "flag": fields.flag,
        "reconsumeTimes": fields.reconsume_times,
        "preparedTransactionOffset": fields.prepared_transaction_offset,
        "bodyBytes": fields.body_bytes,
        "bodyCRC": fields.body_crc,
        "bodyIntact": body_crc(body) == fields.body_crc,
        "properties": names.decode_properties(fields.properties),
    }
    if with_body:
        row["body"] = _text_or_base64(body)
    return row


def dump_units(folder: StoreFolder, selection: Selection) -> Iterator[Row]:
    """Yield consume queue units, with their extension where they have one."""
    for (topic, queue_id), queue in folder.queues.items():
        if not _is_chosen(selection, topic, queue_id):
            continue
        extension = folder.extension_of(queue)
        start = max(queue.first_index, selection.begin or 0)
        for unit in queue.units(start):
            if selection.end is not None and unit.queue_offset >= selection.end:
                break
            row: Row = {
                "topic": topic,
                "queueId": queue_id,
                "queueOffset": unit.queue_offset,
                "physicalOffset": unit.physical_offset,
                "size": unit.size_bytes,
                "tagsCode": unit.tags_code,
            }
            if unit.is_filler:
                row["filler"] = True
            elif is_address(unit.tags_code):
                ext = extension.unit_of(unit.tags_code)
                row["extension"] = ext and {
                    "position": ext.position,
                    "tagsCode": ext.tags_code,
                    "storeTimestamp": ext.store_timestamp,
                    "bitmap": ext.bitmap.hex(),
                }
            yield row


def dump_index(folder: StoreFolder, selection: Selection) -> Iterator[Row]:
    """Yield index entries; with topic and key those with the key's hash."""
    wanted = index_hash(selection.topic or "", selection.key) if selection.key is not None else None
    for index in folder.indexes():
        for entry in index.entries():
            if wanted in (None, entry.key_hash) and selection.has_offset(entry.physical_offset):
                yield {
                    "file": index.file.path.name,
                    "entry": entry.number,
                    "keyHash": entry.key_hash,
                    "slot": entry.key_hash % index.shape.slots,
                    "physicalOffset": entry.physical_offset,
                    "storeTimestamp": index.header.begin_ms + entry.seconds * 1000,
                    "previous": entry.previous,
                }


def dump_checkpoint(folder: StoreFolder) -> Row:
    """Return the checkpoint's three times with the markers beside it."""
    return {
        "keptFrom": folder.checkpoint.kept_from,
        "physicMsgTimestamp": folder.checkpoint.physic_ms,
        "logicsMsgTimestamp": folder.checkpoint.logics_ms,
        "indexMsgTimestamp": folder.checkpoint.index_ms,
        "state": folder.state.value,
        "abort": folder.has_abort_marker,
        "lockedBy": str(folder.lock_holder) if folder.lock_holder else None,
    }


def _records_by_key(folder: StoreFolder, selection: Selection, with_body: bool) -> Iterator[Row]:
    assert selection.topic is not None and selection.key is not None
    wanted = index_hash(selection.topic, selection.key)
    offsets = sorted({offset for index in folder.indexes() for offset in index.find(wanted)})
    for offset in offsets:
        found = folder.log.record_at(offset, check_crc=False)
        if isinstance(found, LogRecord) and _is_wanted(selection, found):
            yield record_row(found, with_body=with_body)


def _records_by_queue(folder: StoreFolder, selection: Selection, with_body: bool) -> Iterator[Row]:
    for (topic, queue_id), queue in folder.queues.items():
        if not _is_chosen(selection, topic, queue_id):
            continue
        for unit in queue.units():
            if unit.is_filler or not selection.has_offset(unit.physical_offset):
                continue
            found = folder.log.record_at(unit.physical_offset, check_crc=False)
            if isinstance(found, LogRecord):
                yield record_row(found, with_body=with_body)
            elif unit.physical_offset >= folder.log.min_offset:
                yield _unreadable(unit, topic, queue_id, found)


def _records_by_log(folder: StoreFolder, selection: Selection, with_body: bool) -> Iterator[Row]:
    for found in folder.log.read(_start(folder, selection), check_crc=False):
        if isinstance(found, LogBreak):
            if found.reason:
                yield {"break": found.kind.value, "physicalOffset": found.physical_offset, "reason": found.reason}
            continue
        if selection.end is not None and found.physical_offset >= selection.end:
            return
        if _is_wanted(selection, found):
            yield record_row(found, with_body=with_body)


def _start(folder: StoreFolder, selection: Selection) -> int | None:
    """Where to begin reading: at the asked offset if a record stands there, else at the start of its file."""
    if selection.begin is None:
        return None
    file = folder.log.find(selection.begin)
    if file is None or isinstance(folder.log.record_at(selection.begin, check_crc=False), LogRecord):
        return None if selection.begin < folder.log.min_offset else selection.begin
    return file.base


def _is_wanted(selection: Selection, found: LogRecord) -> bool:
    fields = found.fields
    if not selection.has_offset(found.physical_offset):
        return False
    if not _is_chosen(selection, fields.topic.decode("utf-8", "replace"), fields.queue_id):
        return False
    if selection.key is None:
        return True
    table = names.decode_properties(fields.properties)
    return selection.key == table.get(names.UNIQ_KEY) or selection.key in table.get(names.KEYS, "").split(" ")


def _has_queues(folder: StoreFolder, selection: Selection) -> bool:
    return any(_is_chosen(selection, topic, queue_id) for topic, queue_id in folder.queues)


def _is_chosen(selection: Selection, topic: str, queue_id: int) -> bool:
    return selection.topic in (None, topic) and selection.queue_id in (None, queue_id)


def _unreadable(unit: Unit, topic: str, queue_id: int, reason: str) -> Row:
    return {
        "break": "unreadable",
        "physicalOffset": unit.physical_offset,
        "topic": topic,
        "queueId": queue_id,
        "queueOffset": unit.queue_offset,
        "reason": reason,
    }


def _host(packed: bytes) -> str:
    ip, port = ids.decode_host(packed)
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _text_or_base64(body: bytes) -> str | dict[str, str]:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}
