"""Patience with servers that are away."""

from __future__ import annotations

import pytest

from gantrymq.contrib.spark.cluster_read import patiently
from gantrymq.errors import ConnectError, GantryError, ResponseError, RouteNotFound
from tests.waiting import WITHIN_S


class Failing:
    """Fails so, then answers."""

    def __init__(self, *failures: GantryError) -> None:
        self.failures = list(failures)

    async def ask(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


async def test_a_server_that_is_away_or_busy_is_asked_again() -> None:
    failing = Failing(ConnectError("a:1", "refused"), ResponseError(2, "busy"))
    assert await patiently(failing.ask, WITHIN_S) == "answer"
    with pytest.raises(ResponseError):
        await patiently(Failing(ResponseError(16, "no permission")).ask, WITHIN_S)


async def test_a_route_that_is_forgotten_while_its_broker_is_away_is_no_deleted_topic() -> None:
    assert await patiently(Failing(RouteNotFound("orders")).ask, WITHIN_S, is_known=True) == "answer"
    with pytest.raises(RouteNotFound):
        await patiently(Failing(RouteNotFound("ordres")).ask, WITHIN_S)
