"""Compressed bodies: zlib, and LZ4 and Zstandard as RocketMQ 5 has them, which need a package each.

The sys flag says which: the bit COMPRESSED, and the codec in three more. Clients older than those bits know zlib only.
"""

from __future__ import annotations

import importlib
import zlib
from typing import Any, Literal

from gantrymq.errors import ConfigError, RecordError
from gantrymq.message import sysflag

CompressType = Literal["zlib", "lz4", "zstd"]

BODY_BYTES_MAX = 32 << 20  # unpacked; producers send at most 4 MiB packed
ZSTD_WINDOW_BYTES_MAX = 32 << 20  # a frame says how much memory it takes; no more than its body may have
ZSTD_PIECE_BYTES = 512  # each can unpack to 16 MiB at most: the smallest block has 4 bytes, the largest 128 KiB
EXTRA = "gantrymq[compression]"

FLAGS: dict[str, int] = {
    "zlib": sysflag.COMPRESSED | sysflag.COMPRESSION_ZLIB,
    "lz4": sysflag.COMPRESSED | sysflag.COMPRESSION_LZ4,
    "zstd": sysflag.COMPRESSED | sysflag.COMPRESSION_ZSTD,
}
_PACKAGES = {"lz4": "lz4.frame", "zstd": "zstandard"}


def check_compress_type(name: str) -> None:
    """ConfigError unless bodies can be compressed like this here."""
    if name not in FLAGS:
        raise ConfigError(f"compress_type={name!r:.60}: it must be one of {', '.join(FLAGS)}")
    if name in _PACKAGES:
        try:
            importlib.import_module(_PACKAGES[name])
        except ImportError as exc:
            raise ConfigError(f"compress_type={name!r} needs a package: pip install '{EXTRA}'") from exc


def compress_body(body: bytes, name: CompressType, level: int) -> bytes:
    """The body as one of the codecs packs it."""
    if name == "lz4":
        lz4: Any = importlib.import_module("lz4.frame")
        # Java's LZ4FrameInputStream reads no frame whose blocks need one another.
        packed: bytes = lz4.compress(body, compression_level=level, block_linked=False, store_size=False)
    elif name == "zstd":
        zstandard: Any = importlib.import_module("zstandard")
        packed = zstandard.ZstdCompressor(level=level).compress(body)
    else:
        packed = zlib.compress(body, level)
    return packed


def decompress_body(body: bytes, sys_flag: int, *, max_bytes: int = BODY_BYTES_MAX) -> bytes:
    """Return the body as the producer's application gave it.

    RecordError when it can't be unpacked here, or would take more than `max_bytes`: a small packed body could fill the
    memory.
    """
    if not sys_flag & sysflag.COMPRESSED:
        return body
    codec = sys_flag & sysflag.COMPRESSION_MASK
    try:
        if codec in (0, sysflag.COMPRESSION_ZLIB):  # 0: clients older than the codec bits
            unpacker = zlib.decompressobj()
            plain = unpacker.decompress(body, max_bytes)
            complete = unpacker.eof
        elif codec == sysflag.COMPRESSION_LZ4:
            unpacker = importlib.import_module("lz4.frame").LZ4FrameDecompressor()
            plain = unpacker.decompress(body, max_length=max_bytes)
            complete = unpacker.eof
        elif codec == sysflag.COMPRESSION_ZSTD:
            plain, complete = _from_zstd(body, max_bytes)
        else:
            raise RecordError(f"body is compressed with unknown codec {codec:#x}")
    except ImportError as exc:
        raise RecordError(
            f"body is compressed with a codec that needs the package {exc.name!r}: pip install '{EXTRA}'"
        ) from exc
    except RecordError:
        raise
    except Exception as exc:  # each codec has its own error type; the meaning is the same
        raise RecordError(f"compressed body can't be unpacked: {exc}") from exc
    if not complete:
        raise RecordError(f"compressed body is cut short, or unpacks to more than {max_bytes} bytes")
    return bytes(plain)


def _from_zstd(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    """What a frame unpacks to, and whether that is all of it. Its reader can't tell a cut frame from a whole one."""
    zstandard: Any = importlib.import_module("zstandard")
    unpacker = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX).decompressobj()
    parts: list[bytes] = []
    left = max_bytes
    for start in range(0, len(body), ZSTD_PIECE_BYTES):
        parts.append(unpacker.decompress(body[start : start + ZSTD_PIECE_BYTES]))
        left -= len(parts[-1])
        if left < 0 or unpacker.eof:
            break
    return b"".join(parts), left >= 0 and unpacker.eof
