"""A provider that answers what a test wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dashboard.sign_in.lying_provider import LyingProvider, lying_provider


@pytest.fixture
def lying() -> Iterator[LyingProvider]:
    with lying_provider() as provider:
        yield provider
