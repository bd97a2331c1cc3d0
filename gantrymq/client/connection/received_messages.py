"""The messages inside an answer, as their sender made them: bodies decompressed, flags cleared."""

from __future__ import annotations

import logging

from gantrymq.errors import RecordError
from gantrymq.message import sysflag
from gantrymq.message.model import MessageExt
from gantrymq.message.record import decode_records, decompress_body

logger: logging.Logger = logging.getLogger(__name__)


def read_messages(body: bytes, broker_name: str = "") -> list[MessageExt]:
    """The messages of an answer's body. RecordError when the bytes are damaged."""
    messages = decode_records(body)
    for message in messages:
        message.broker_name = broker_name
        if message.sys_flag & sysflag.COMPRESSED:
            unpack(message)
    return messages


def unpack(message: MessageExt) -> None:
    """Decompress the body in place. A body that can't be unpacked stays as it was sent; its sys_flag still says so."""
    try:
        message.body = decompress_body(message.body, message.sys_flag)
    except RecordError as exc:
        logger.warning(
            "body left compressed (msg_id=%s): %s",
            message.msg_id,
            exc,
            extra={"event": "body_left_compressed", "msg_id": message.msg_id, "error": str(exc)},
        )
        return
    message.sys_flag &= ~(sysflag.COMPRESSED | sysflag.COMPRESSION_MASK)
