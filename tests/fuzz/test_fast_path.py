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

from appliance.fast_path.loader import SANITIZE, VARIABLE, load
from gantrymq.remoting.command import JSON, ROCKETMQ
from gantrymq.remoting.signature import STAMP
from tests.appliance.fast_path import pulls, signed
from tests.appliance.fast_path.compiling import build_or_skip
from tests.appliance.fast_path.copies import two_copies
from tests.appliance.fast_path.reader.read_side import ReadSide
from tests.appliance.fast_path.rig import Pair, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send
from tests.fuzz.fuzzing import Fuzz, damaged
from tests.store.made_records import logs

# Two brokers are made for each example: with less of them a run of a few seconds does not begin too much.
EXAMPLES = 100
EXAMPLES_WITH_MESSAGES = 20
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
PULLS = [
    make(serialize_type)
    for serialize_type in (JSON, ROCKETMQ)
    for make in (
        lambda kind: pulls.pull(1, 3, serialize_type=kind),
        lambda kind: pulls.pull(2, 0, serialize_type=kind, subscription="TagA || TagC", maxMsgNums="200"),
        lambda kind: pulls.pull(3, 9, serialize_type=kind, sysFlag="1", commitOffset="7", expressionType=None),
    )
]
SIGNED_SENDS, SIGNED_PULLS = (
    [
        signed.signed(account, make(10 + number, encoding=kind, **stamp))
        for number, account in enumerate((signed.RIGHT, signed.ADMIN))
        for kind in (JSON, ROCKETMQ)
        for stamp in ({}, {STAMP: f"1700000000000.0123456789abcdef.{number + 2 * kind + 1}.{code}"})
    ]
    for make, code in ((signed.request, 310), (signed.pull, 11))
)


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
def frames_with_their_length(draw: Any, frames: list[bytes]) -> bytes:
    """Damaged inside, and the length in front is right: what is wrong is found late."""
    inside = draw(damaged([frame[4:] for frame in frames]))
    return len(inside).to_bytes(4) + inside


@st.composite
def streams(draw: Any, frames: list[bytes]) -> list[bytes]:
    """Some frames, whole or damaged, in pieces of any size."""
    frame = st.sampled_from(frames) | frames_with_their_length(frames) | damaged(frames)
    stream = b"".join(draw(st.lists(frame, min_size=1, max_size=5)))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=3)))
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


async def serve(pair: Pair, pieces: list[bytes]) -> None:
    for piece in pieces:
        await pair.receive(piece)
    pair.check()


def test_any_stream_is_served_as_by_python(runner: asyncio.Runner, fuzz: Fuzz, tmp_path: Path) -> None:
    async def scene(pair: Pair, pieces: list[bytes]) -> None:
        await first_messages(pair)
        await serve(pair, pieces)

    def both(pieces: list[bytes]) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder, pair_of_brokers(Path(folder)) as pair:
            runner.run(scene(pair, pieces))

    fuzz(streams(FRAMES), both, examples=EXAMPLES)


def test_any_stream_the_twin_reads_is_served_as_by_python(runner: asyncio.Runner, fuzz: Fuzz, tmp_path: Path) -> None:
    """From real sockets, sends and then pulls; each on a connection that the compiled reader has."""

    async def scene(pair: Pair, sends: list[bytes], asked: list[bytes]) -> None:
        await pulls.fill(pair, 40)
        for pieces in (sends, asked):
            pair.connect()
            await pair.receive(send(5))
            await serve(pair, pieces)

    def both(value: tuple[list[bytes], list[bytes]]) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder, pair_of_brokers(Path(folder)) as pair:
            pair.fast = side = ReadSide(pair.fast)
            try:
                runner.run(scene(pair, *value))
            finally:
                side.close()

    fuzz(st.tuples(streams(FRAMES), streams(PULLS)), both, examples=EXAMPLES_WITH_MESSAGES)


def test_any_stream_of_pulls_is_served_as_by_python(runner: asyncio.Runner, fuzz: Fuzz, tmp_path: Path) -> None:
    """Units in memory and in files."""

    async def scene(pair: Pair, pieces: list[bytes], kept: int) -> None:
        await pulls.fill(pair, 60)
        for side in (pair.fast, pair.plain):
            side.broker.store.queue_flusher.finish()
            for queue in side.broker.store.parts.queues:
                queue.trim(kept)
        await serve(pair, pieces)

    def both(value: tuple[list[bytes], int]) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder, pair_of_brokers(Path(folder)) as pair:
            runner.run(scene(pair, *value))

    fuzz(st.tuples(streams(PULLS), st.sampled_from([0, 4, 100])), both, examples=EXAMPLES_WITH_MESSAGES)


def test_any_stream_of_signed_requests_is_as_by_python(runner: asyncio.Runner, fuzz: Fuzz, tmp_path: Path) -> None:
    """Sends, then pulls: of one read event Python serves the sends first, whatever their order."""

    async def scene(pair: Pair, sends: list[bytes], asked: list[bytes]) -> None:
        await signed.readable_messages(pair)
        await serve(pair, sends)
        pair.connect()
        await serve(pair, asked)

    def both(value: tuple[list[bytes], list[bytes]]) -> None:
        with (
            tempfile.TemporaryDirectory(dir=tmp_path) as folder,
            pair_of_brokers(Path(folder), accounts=signed.ACCOUNTS) as pair,
        ):
            runner.run(scene(pair, *value))

    fuzz(st.tuples(streams(SIGNED_SENDS), streams(SIGNED_PULLS)), both, examples=EXAMPLES_WITH_MESSAGES)


def test_any_log_is_copied_as_by_python(fuzz: Fuzz, tmp_path: Path) -> None:
    module = load()
    assert module is not None

    def both(value: tuple[bytes, int, bool]) -> None:
        log, cut, crashes = value
        with (
            tempfile.TemporaryDirectory(dir=tmp_path) as folder,
            two_copies(Path(folder), module, commit_log_file_bytes=4096) as copies,
        ):
            copies.append_all([log[:cut], log[cut:]])
            copies.check()
            if crashes:
                copies.crash()
                copies.check()

    fuzz(st.tuples(logs(4096), st.integers(0, 20_000), st.booleans()), both, examples=EXAMPLES_WITH_MESSAGES)
