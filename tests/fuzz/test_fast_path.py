"""The compiled twin and the Python path get the same made-up bytes: what they answer and leave behind is the same.

With sanitizers: `python -m tests.suite.sanitized tests/fuzz/test_fast_path.py --fuzz-seconds 3600`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from appliance.fast_path.loader import SANITIZE, VARIABLE
from gantrymq.remoting.command import JSON, ROCKETMQ
from tests.appliance.fast_path.compiling import build_or_skip
from tests.appliance.fast_path.rig import Pair, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send
from tests.fuzz.fuzzing import Fuzz, damaged

PROPERTIES = "UNIQ_KEY\x01AC1100010A0018B4AAC2\x02WAIT\x01true\x02KEYS\x01a \u00e9\u4e2d\U0001f600\x02TAGS\x01T"
FRAMES = [
    make(serialize_type)
    for serialize_type in (JSON, ROCKETMQ)
    for make in (
        lambda kind: send(5, b"body", PROPERTIES, serialize_type=kind),
        lambda kind: send(6, b"", "", code=320, serialize_type=kind, flag=2),
        lambda kind: send(7, b"x" * 300, "TAGS\x01" + 'q"\\/\b\n\x00' * 5, serialize_type=kind, e="-1"),
        lambda kind: batch(8, [b"1", b"22", b""], serialize_type=kind),
    )
]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> Iterator[None]:
    build_or_skip()
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get(VARIABLE) != SANITIZE:
            patch.delenv(VARIABLE, raising=False)
        yield


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@st.composite
def frames_with_their_length(draw: Any) -> bytes:
    """Damaged inside, and the length in front is right: what is wrong is found late."""
    inside = draw(damaged([frame[4:] for frame in FRAMES]))
    return len(inside).to_bytes(4) + inside


@st.composite
def streams(draw: Any) -> list[bytes]:
    """Some frames, whole or damaged, in pieces of any size."""
    frame = st.sampled_from(FRAMES) | frames_with_their_length() | damaged(FRAMES)
    stream = b"".join(draw(st.lists(frame, min_size=1, max_size=5)))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=3)))
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


async def serve(pair: Pair, pieces: list[bytes]) -> None:
    await first_messages(pair)
    for piece in pieces:
        await pair.receive(piece)
    pair.check()


def test_any_stream_is_served_as_by_python(runner: asyncio.Runner, fuzz: Fuzz, tmp_path: Path) -> None:
    def both(pieces: list[bytes]) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder, pair_of_brokers(Path(folder)) as pair:
            runner.run(serve(pair, pieces))

    fuzz(streams(), both)
