"""What speaks against a promotion: what was confirmed is not there."""

from __future__ import annotations

from typing import Any

import pytest

from gantrymq.client.admin.succession import Member, SuccessionAdmin

SLAVE = "10.0.0.2:10911"
OTHER = "10.0.0.3:10911"
TOLD = {"inSyncSetTold": OTHER, "inSyncEpochTold": "2", "confirmedOffsetTold": "900"}


def slave(end: int, address: str = SLAVE, **info: str) -> Member:
    figures = {"brokerRole": "SLAVE", "commitLogMaxOffset": str(end), "epochHighest": "2", "slaveMasterEnd": str(end)}
    return Member(address, 1, figures | {"slaveHeardSecondsAgo": "1.0"} | info)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([slave(800, **TOLD)], [f"{SLAVE} lacks 100 bytes that were confirmed: {OTHER} was in sync"]),
        ([slave(800), slave(700, OTHER, **TOLD)], [f"{SLAVE} lacks 100 bytes that were confirmed"]),
        ([slave(900, **TOLD)], []),
        ([slave(800, **TOLD | {"inSyncEpochTold": "1"})], []),
        ([slave(800)], []),
    ],
)
async def test_a_slave_that_lacks_what_was_confirmed_is_not_promoted(
    monkeypatch: pytest.MonkeyPatch, members: list[Member], words: list[str]
) -> None:
    async def view(_admin: SuccessionAdmin, _name: str, *_further: str) -> list[Member]:
        return members

    monkeypatch.setattr(SuccessionAdmin, "view", view)
    unused: Any = None
    promotion = await SuccessionAdmin(unused, unused, unused).promotion("broker-a", SLAVE)
    assert [obstacle[: len(word)] for obstacle, word in zip(promotion.obstacles, words, strict=True)] == words
