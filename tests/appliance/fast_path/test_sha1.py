"""Signatures of the compiled module are those of hashlib: for all lengths of both parts, by both ways."""

from __future__ import annotations

import base64
import hmac
import random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.remoting.signature import SigningKey
from tests.bounded import bounded

BYTES = random.Random(1).randbytes(8192)
WAYS = pytest.mark.parametrize("by_words", [False, True])
# RFC 2202, section 3; keys that are texts.
VECTORS = [
    ("\x0b" * 20, b"Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
    ("Jefe", b"what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
    ("".join(map(chr, range(1, 26))), b"\xcd" * 50, "4c9007f4026250c6bc8414f9bf50c86c2d7235da"),
    ("\x0c" * 20, b"Test With Truncation", "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04"),
]


def expected(secret: str, content: bytes, body: bytes) -> bytes:
    return base64.b64encode(hmac.digest(secret.encode(), content + body, "sha1"))


@WAYS
@pytest.mark.parametrize(("secret", "content", "digest"), VECTORS)
def test_the_vectors_of_the_standard(
    compiled: ModuleType, by_words: bool, secret: str, content: bytes, digest: str
) -> None:
    signature = compiled.hmac_sha1(SigningKey(secret).blocks, content, b"", by_words=by_words)
    assert base64.b64decode(signature).hex() == digest


@WAYS
def test_each_border_between_text_and_body(compiled: ModuleType, by_words: bool) -> None:
    key = SigningKey("rightSecret1").blocks
    for size in range(200):
        for place in {*range(0, size + 1, 7), *range(max(size - 3, 0), size + 1), min(size, 64)}:
            content, body = BYTES[:place], BYTES[place:size]
            found = compiled.hmac_sha1(key, content, body, by_words=by_words)
            assert found == expected("rightSecret1", content, body), (place, size)


@WAYS
@bounded(300)
@given(secret=st.text(max_size=80), content=st.binary(max_size=300), size=st.integers(0, 8192))
def test_any_key_and_text(compiled: ModuleType, by_words: bool, secret: str, content: bytes, size: int) -> None:
    """Keys above a block are hashed first."""
    found = compiled.hmac_sha1(SigningKey(secret).blocks, content, BYTES[:size], by_words=by_words)
    assert found == expected(secret, content, BYTES[:size])


def test_what_is_no_key_is_refused(compiled: ModuleType) -> None:
    block = b"\0" * 64
    for blocks in ((block, b"\0" * 63), (b"", block), (block, None)):
        with pytest.raises(ValueError, match="two blocks of 64 bytes"):
            compiled.hmac_sha1(blocks, b"", b"")
    with pytest.raises(TypeError):
        compiled.hmac_sha1((block, "text"), b"", b"")
    with pytest.raises(IndexError):
        compiled.hmac_sha1((block,), b"", b"")
