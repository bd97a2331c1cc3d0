"""Every Python program of the pages runs against a real broker and prints what the page says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.appliance.acl.cluster import accounts_file
from tests.certificates import authority, server_fields
from tests.docs.pages import PYTHON, ROOT, Block
from tests.harness import ServingCluster, serving

LIMIT_S = 90  # the slowest example takes six on an idle machine
ADDRESS = "127.0.0.1:9876"
READ_IN_ORDER = ("tutorial.md", "kafka.md", "rabbitmq.md", "rocketmq-client-python.md")
ACCOUNT = """\
accounts:
- accessKey: shop-app
  secretKey: a-long-secret
  topicPerms: [ "orders=PUB|SUB" ]
"""


@contextlib.asynccontextmanager
async def cluster_for(needs: str, folder: Path) -> AsyncIterator[ServingCluster]:
    """A name server and a broker as the example wants them; certificates where the page's commands put them."""
    if needs == "tls":
        (folder / "certificates").symlink_to(authority())
        async with serving(folder, broker=server_fields(), namesrv=server_fields()) as cluster:
            yield cluster
    elif needs == "accounts":
        accounts_file(folder, ACCOUNT)
        async with serving(folder, broker={"acl_enable": True, "rocketmq_home": folder}) as cluster:
            yield cluster
    else:
        assert not needs, f"<!-- test: {needs} --> means nothing"
        async with serving(folder) as cluster:
            yield cluster


async def run(block: Block, cluster: ServingCluster, folder: Path) -> None:
    """Run an example; it ends well and prints what the page says."""
    assert ADDRESS in block.code, "an example talks to a broker"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", block.code.replace(ADDRESS, cluster.namesrv_address), cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, errors = await asyncio.wait_for(process.communicate(b"\n"), LIMIT_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    assert out, "an example shows something"
    if block.output is not None:
        assert out.decode() == block.output, block


@pytest.mark.parametrize("block", [block for block in PYTHON if block.page not in READ_IN_ORDER], ids=str)
async def test_an_example_runs_and_prints_what_the_page_says(block: Block, tmp_path: Path) -> None:
    async with cluster_for(block.needs, tmp_path) as cluster:
        await run(block, cluster, tmp_path)


@pytest.mark.parametrize("page", READ_IN_ORDER)
async def test_a_page_that_is_followed_from_its_top_prints_what_it_says_twice(page: str, tmp_path: Path) -> None:
    blocks = [block for block in PYTHON if block.page == page]
    async with cluster_for("", tmp_path) as cluster:
        for block in [*blocks, *blocks]:
            await run(block, cluster, tmp_path)
    assert len(blocks) >= 2


def test_the_pages_have_examples() -> None:
    assert len(PYTHON) >= 10
