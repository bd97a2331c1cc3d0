"""Waiting for a condition, in threads and on a loop."""

from __future__ import annotations

import pytest

from gantrymq.testing import wait_for, wait_for_async


def test_the_first_true_value_is_returned() -> None:
    values = iter([0, None, "", "there", "too late"])
    assert wait_for(lambda: next(values)) == "there"


def test_what_never_comes_is_a_timeout_that_names_it() -> None:
    with pytest.raises(TimeoutError, match=r"not within 0\.05 s: a message of Anna"):
        wait_for(lambda: False, 0.05, what="a message of Anna")


async def test_a_condition_may_be_async() -> None:
    values = iter([0, 7])

    async def condition() -> int:
        return next(values)

    assert await wait_for_async(condition) == 7
    assert await wait_for_async(lambda: "plain") == "plain"
    with pytest.raises(TimeoutError, match="not within"):
        await wait_for_async(lambda: None, 0.05)
