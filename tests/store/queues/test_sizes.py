"""The bytes of a queue's messages, from its units."""

from __future__ import annotations

import random

from store.queues.consume_queue import FILLER
from store.queues.scan import UNIT
from store.queues.sizes import size_of


def test_the_sum_over_columns_is_the_sum_over_units() -> None:
    dice = random.Random(7)
    sizes = [dice.choice((91, 255, 256, 65_535, 65_536, 4_194_304, 0x7EFFFFFF)) for _ in range(500)]
    units = b"".join(UNIT.pack(dice.getrandbits(62), size, dice.getrandbits(62)) for size in sizes)
    assert size_of(units) == sum(sizes)
    assert size_of(b"") == 0


def test_fillers_and_damaged_units_count_nothing() -> None:
    units = FILLER + UNIT.pack(0, 100, 1) + FILLER + UNIT.pack(100, 200, 1) + UNIT.pack(300, -5, 1)
    assert size_of(units) == 300
