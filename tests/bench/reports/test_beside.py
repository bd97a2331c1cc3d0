"""What the slices of a broker's latency with and without a run say together."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyarrow")

from tests.bench.reports.beside import Beside


def test_slices_are_compared_with_their_neighbours_and_the_machines_own_swing_is_told() -> None:
    found = Beside(500, [1.0, 2.0, 1.0], [1.5, 2.0, 4.0], [0.5, 0.5, 0.5], [0.5, 1.0, 0.5], runs=7)
    assert found.ratios == [1.5, 1.0, 4.0]
    assert found.ack_ratios == [1.0, 2.0, 1.0]
    assert found.swing == [2.0, 2.0]
    first, _, consumer, answer, swing = str(found).splitlines()
    assert "500/s" in first and "3 slices each" in first and "7 runs" in first
    assert consumer.split()[-4:] == ["1.00", "2.00", "1.50", "4.00"]
    assert answer.split()[-4:] == ["0.50", "0.50", "1.00", "2.00"]
    assert "factor of 2.00, worst 2.00" in swing
    assert json.loads(json.dumps(found.as_json()))["beside"] == [1.5, 2.0, 4.0]


def test_one_slice_has_no_neighbour_to_swing_with() -> None:
    found = Beside(1000, [1.0], [3.0], [1.0], [2.0], runs=1)
    assert "unknown" in str(found)
