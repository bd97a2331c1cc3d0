"""What official clients said to a real broker, said to both paths: the same answers, the same state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.appliance.fast_path.rig import pair_of_brokers
from tests.gantrymq.remoting.golden import captured

PLAIN = (10, 310, 320, 11)


@pytest.mark.parametrize("client", ["java_json", "java_rocketmq", "go", "ali_ons", "acl"])
async def test_the_sends_and_pulls_of_a_client(tmp_path: Path, client: str) -> None:
    frames = [
        bytes.fromhex(frame["hex"]) for frame in captured(client) if frame["dir"] == "c2s" and frame["code"] in PLAIN
    ]
    assert frames, "nothing was captured"
    with pair_of_brokers(tmp_path) as pair:
        for frame in frames * 2:  # the first time they create topics and groups
            await pair.receive(frame)
        assert pair.fast.served_fast > len(frames) // 4
        pair.check()
