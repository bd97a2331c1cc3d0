"""Both ends of a guardian's link."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.appliance.supervisor.guarded import Guarded


@pytest.fixture
async def guarded() -> AsyncIterator[Guarded]:
    async with Guarded() as both_ends:
        yield both_ends
