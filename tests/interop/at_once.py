"""Two cases of a parametrized test at a time: cases that mostly wait, each for processes of its own.

A module defines `run_case(folder, java, **parameters)`; its test asks the fixture `at_once` for its own outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.clients import JavaClient

AT_ONCE = 2


@pytest.fixture(scope="module")
def at_once(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java: JavaClient
) -> Iterator[Callable[[pytest.Item], None]]:
    """Runs the selected cases of the module, in their order; call it with `request.node` to wait for that case."""
    cases = [item for item in request.session.items if isinstance(item, pytest.Function) and _is_case(item, request)]
    # children die with the thread that made them: the pool's threads stay until the module is done
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {
            item.name: pool.submit(
                request.module.run_case, tmp_path_factory.mktemp("case"), java, **item.callspec.params
            )
            for item in cases
        }
        yield lambda node: running[node.name].result()
        pool.shutdown(cancel_futures=True)


def _is_case(item: pytest.Function, request: pytest.FixtureRequest) -> bool:
    return item.module is request.module and "at_once" in item.fixturenames
