"""How long and with which seeds the fuzzed targets run, and what their input is made of.

`--fuzz-seconds N` shares N seconds among the targets (20 by default); `--fuzz-seed S` says where the seeds begin.
Hypothesis runs with the seeds S, S+1, ... until the time is up, so a run is repeated by its numbers: a failure prints
the seed, and `--fuzz-seed` with it and one second meets it first.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

EXAMPLES_A_SEED = 200
EXAMPLE_CPU_SECONDS_MAX = 5.0  # of one input, however busy the machine is
PHASES = (Phase.generate, Phase.shrink)


class Fuzz:
    """Runs one target for its share of the time."""

    def __init__(self, seconds: float, seed: int) -> None:
        self._seconds = seconds
        self._seed = seed

    def __call__(
        self, strategy: st.SearchStrategy[Any], target: Callable[[Any], None], *, examples: int = EXAMPLES_A_SEED
    ) -> None:
        """Give `target` inputs until the time is up, of each seed so many; what it raises is a finding."""

        def timed(value: Any) -> None:
            started = time.process_time()
            target(value)
            assert time.process_time() - started < EXAMPLE_CPU_SECONDS_MAX, "takes too long"

        deadline = time.monotonic() + self._seconds
        for seed in itertools.count(self._seed):
            options = settings(
                max_examples=examples, database=None, deadline=None, phases=PHASES,
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            try:
                hypothesis.seed(seed)(options(given(strategy)(timed)))()
            except BaseException:
                print(f"found with --fuzz-seed {seed}")
                raise
            if time.monotonic() >= deadline:
                print(f"seeds {self._seed} to {seed}")
                return


@pytest.fixture
def fuzz(request: pytest.FixtureRequest) -> Fuzz:
    targets = sum("fuzz" in getattr(item, "fixturenames", ()) for item in request.session.items)
    seconds = float(request.config.getoption("--fuzz-seconds"))
    return Fuzz(seconds / targets, int(request.config.getoption("--fuzz-seed")))


# -- input ------------------------------------------------------------------------------------------------------------

NASTY_TEXTS = (
    "", "0", "-1", "9223372036854775808", "1e9", "1.0", "NaN", "null", "true", "../..", "a\x01b\x02", "\u20ac",
    "%2e%2e", "\0", "x" * 300, " 5 ", "1_0", "٣", "+7", "TBW102", "@", "{}", "[]", '"', "\\",
)  # fmt: skip
NASTY_BYTES = (
    b"", b"\0", b"\xff", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0" * 8, b"{", b"}", b"[", b'"', b":", b",",
    b"\\", b"\\u", b"{{", b"1e999", b"\xc3\x28", b"\xed\xa0\x80", b"null", b"-", b"\x01", b"\x02", b"0" * 30,
)  # fmt: skip

texts = st.sampled_from(NASTY_TEXTS) | st.text(max_size=20)
numbers = st.integers(-(1 << 64), 1 << 64) | st.integers(-2, 20) | st.floats()
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def damaged(draw: Any, originals: list[bytes]) -> bytes:
    """One of the originals with a few bytes changed, cut out, put in or repeated."""
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        kind = draw(st.integers(0, 4))
        if kind == 0 and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif kind == 1:
            del data[at : at + draw(st.integers(1, 40))]
        elif kind == 2:
            data[at:at] = draw(st.sampled_from(NASTY_BYTES))
        elif kind == 3:
            data[at:at] = data[at : at + draw(st.integers(1, 40))]
        else:
            piece = draw(st.sampled_from(NASTY_BYTES))
            data[at : at + len(piece)] = piece
    return bytes(data)


def near(originals: list[bytes]) -> st.SearchStrategy[bytes]:
    """Damaged originals, and now and then any bytes."""
    return damaged(originals) | st.binary(max_size=300)


@st.composite
def with_changed_members(draw: Any, originals: list[Any]) -> Any:
    """A JSON document of the right shape with some members replaced, wherever they stand."""
    return _changed(draw, draw(st.sampled_from(originals)), 0)


def _changed(draw: Any, value: Any, depth: int) -> Any:
    if draw(st.integers(0, 5)) == 0:
        return draw(documents)
    if depth < 6 and isinstance(value, dict):
        return {key: _changed(draw, item, depth + 1) for key, item in value.items() if draw(st.integers(0, 11))}
    if depth < 6 and isinstance(value, list):
        return [_changed(draw, item, depth + 1) for item in value]
    return value
