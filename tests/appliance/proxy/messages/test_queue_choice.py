from __future__ import annotations

import pytest

from appliance.proxy.sending import bucket_of, jump_hash

# Of Guava's own tests: what its consistentHash answers.
GUAVA = [(10863919174838991, 11, 6), (2016238256797177309, 11, 3), (1673758223894951030, 11, 5)]
GUAVA += [(2, 100001, 80343), (2201, 100001, 22152), (2202, 100001, 15018)]


@pytest.mark.parametrize(("key", "buckets", "expected"), GUAVA)
def test_the_bucket_is_the_one_of_other_proxies(key: int, buckets: int, expected: int) -> None:
    assert jump_hash(key, buckets) == expected


def test_few_groups_move_when_a_queue_is_added() -> None:
    groups = [f"order-{number}" for number in range(1000)]
    moved = sum(bucket_of(group, 8) != bucket_of(group, 9) for group in groups)
    assert 0 < moved < 200
    assert all(bucket_of(group, 9) == 8 for group in groups if bucket_of(group, 8) != bucket_of(group, 9))
