"""Percentiles are never too small and at most half too large, whatever is added to what."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dashboard.cluster import units
from dashboard.latency.figures import bound_in_words
from dashboard.latency.histogram import BOUNDS, WEEK_MS, Histogram, summed
from tests.bounded import bounded


def of(*took_ms: int) -> Histogram:
    histogram = Histogram()
    for one in took_ms:
        histogram.add(one)
    return histogram


def test_bounds_rise_by_no_more_than_twice_and_end_with_a_week() -> None:
    assert BOUNDS[:14] == (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40) and BOUNDS[-1] == WEEK_MS
    assert all(1 < after / before <= 1.5 for before, after in pairwise(BOUNDS[1:]))
    assert len(BOUNDS) < 256


@bounded(500)
@given(st.lists(st.integers(0, WEEK_MS), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_the_bound_above_the_true_one(took_ms: list[int], share: float) -> None:
    true = sorted(took_ms)[math.ceil(share * len(took_ms)) - 1]
    shown = of(*took_ms).percentile(share)
    assert shown is not None and true <= shown <= (max(1, true) if true < 2 else max(3, true * 4 / 3))


def test_a_bound_in_words_is_not_rounded_down_to_a_shorter_time() -> None:
    shown = [bound_in_words(bound_ms).replace(units.THIN, " ") for bound_ms in (8, 50_000, 200_000, 4_000_000)]
    assert shown == ["8 ms", "50 s", "200 s", "4 000 s"] and bound_in_words(None) == units.UNKNOWN
    longer = [bound_ms for bound_ms in BOUNDS if bound_ms > 60_000]
    assert [int("".join(filter(str.isdigit, bound_in_words(bound_ms)))) * 1000 for bound_ms in longer] == longer


@bounded(500)
@given(st.lists(st.integers(0, 2 * WEEK_MS)), st.lists(st.integers(0, 2 * WEEK_MS)))
def test_two_are_added_and_packed_without_loss(one: list[int], other: list[int]) -> None:
    both = summed([of(*one), of(*other)])
    assert both == of(*one, *other) == Histogram.from_bytes(both.to_bytes())
    assert both.total == len(one) + len(other) == sum(count for _, count in both.buckets)


def test_buckets_have_no_hole_and_torn_bytes_are_left_out() -> None:
    assert of(2, 2, 5).buckets == [(2, 2), (3, 0), (4, 0), (5, 1)]
    assert of(2, 2, 7).coarse == [(2, 2), (5, 0), (10, 1)] and of(20).coarse == [(20, 1)]
    assert of(WEEK_MS - 1).coarse == [(WEEK_MS, 1)]
    assert Histogram().buckets == [] and Histogram().percentile(0.5) is None
    assert Histogram.from_bytes(of(2).to_bytes() + b"\xff" * 7) == of(2)
