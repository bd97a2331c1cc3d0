"""Both doors: on libnghttp2, where the compiled module and the library are, and on grpclib."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.proxy import controller
from tests.appliance.proxy.proxies import ProxyCluster, proxied, require_compiled_door


@pytest.fixture(params=["nghttp2", "grpclib"])
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What serves HTTP/2 in proxies that the test starts."""
    if request.param == "grpclib":
        monkeypatch.setattr(controller, "compiled_http2", lambda: (None, "left out"))
    else:
        require_compiled_door()
    return str(request.param)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ProxyCluster]:
    async with proxied(tmp_path) as cluster:
        yield cluster
