"""Bodies packed and unpacked, by each codec."""

from __future__ import annotations

import random
import sys
import zlib
from typing import get_args

import pytest

from gantrymq.errors import ConfigError, RecordError
from gantrymq.message import sysflag
from gantrymq.message.compression import FLAGS, CompressType, check_compress_type, compress_body, decompress_body

TEXT = b"the same again, and " * 20000


@pytest.mark.parametrize("codec", [0, sysflag.COMPRESSION_ZLIB])
def test_zlib_bodies_are_unpacked(codec: int) -> None:
    packed = zlib.compress(b"x" * 5000)
    assert decompress_body(packed, sysflag.COMPRESSED | codec) == b"x" * 5000
    assert decompress_body(b"plain", codec) == b"plain"


@pytest.mark.parametrize("name", get_args(CompressType))
def test_what_a_codec_packs_it_unpacks(name: CompressType) -> None:
    check_compress_type(name)
    noise = random.Random(7).randbytes(200_000)
    for body in (b"x", TEXT, noise):
        packed = compress_body(body, name, 5)
        assert decompress_body(packed, FLAGS[name]) == body
        assert decompress_body(packed, FLAGS[name], max_bytes=len(body)) == body


@pytest.mark.parametrize("name", get_args(CompressType))
def test_a_body_that_unpacks_to_too_much_is_refused(name: CompressType) -> None:
    bomb = compress_body(bytes(2 << 20), name, 5)
    with pytest.raises(RecordError, match="more than"):
        decompress_body(bomb, FLAGS[name], max_bytes=1 << 20)


@pytest.mark.parametrize("name", get_args(CompressType))
def test_a_body_that_is_cut_short_or_damaged_is_an_error(name: CompressType) -> None:
    packed = compress_body(TEXT, name, 5)
    for damaged in (packed[:-1], packed[: len(packed) // 2], b"", b"no such thing"):
        with pytest.raises(RecordError):
            decompress_body(damaged, FLAGS[name])


def test_an_unknown_codec_is_an_error() -> None:
    with pytest.raises(RecordError, match="unknown codec"):
        decompress_body(b"", sysflag.COMPRESSED | 0x500)
    with pytest.raises(ConfigError, match="one of zlib, lz4, zstd"):
        check_compress_type("gzip")


def test_a_codec_whose_package_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = compress_body(TEXT, "lz4", 5)
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    with pytest.raises(ConfigError, match=r"pip install 'gantrymq\[compression\]'"):
        check_compress_type("lz4")
    with pytest.raises(RecordError, match=r"pip install 'gantrymq\[compression\]'"):
        decompress_body(packed, FLAGS["lz4"])
