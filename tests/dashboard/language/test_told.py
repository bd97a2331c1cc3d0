"""What brokers tell of etcd is known again on pages: both texts in one test, since they stand in two packages."""

from __future__ import annotations

from typing import Any, cast

import pytest
from django.utils import translation

from appliance.register.etcd import EtcdClient, Health
from appliance.register.room import CHANGES_KEPT, CORRUPT, LARGE_BYTES, NO_SPACE, trouble_of
from dashboard.language.choice import PLAIN
from dashboard.language.sentences import again
from dashboard.language.told import told_in_words


class Etcd:
    """One that keeps every change."""

    def __init__(self, *alarms: str) -> None:
        self._health = Health(CHANGES_KEPT + 1, LARGE_BYTES, frozenset(alarms))

    async def health(self) -> Health:
        return self._health

    async def has_kept(self, key: str, revision: int) -> bool:
        return True


@pytest.mark.parametrize("alarms", [(), (NO_SPACE,), (CORRUPT,)])
async def test_each_trouble_of_etcd_is_said_in_the_language_of_the_page(alarms: tuple[str, ...]) -> None:
    told = (await trouble_of(cast(EtcdClient, cast(Any, Etcd(*alarms))), "/key")).text
    with translation.override(PLAIN):
        known = told_in_words(told)
        assert known == told
    with translation.override("zh-hans"):
        chinese = again(known)
    assert chinese != told and "etcd" in chinese


@pytest.mark.parametrize(
    ("told", "values"),
    [
        ("was killed by SIGKILL", ["SIGKILL"]),
        ("ended with exit code -9", ["-9"]),
        ("did not answer for 12.5 s", ["12.5"]),
        (
            "broker-a: its log takes 1.2 GiB now and will take up to 3 GiB at its retention of 48 h; the disk has "
            "5.0 GiB for it until it is 85 % full, so messages may be deleted after about 30 h.",
            ["broker-a", "1.2 GiB", "3 GiB", "48", "5.0 GiB", "85 %", "30"],
        ),
        (
            "b: 1,024 bytes of the log at physical offset 77 are damaged and not counted; they held messages stored "
            "from 2026-11-21 07:30 to 2026-11-21 08:00 UTC",
            ["1,024 bytes", "77", "2026-11-21 07:30", "2026-11-21 08:00"],
        ),
    ],
)
def test_a_sentence_is_known_by_its_text_and_keeps_its_values(told: str, values: list[str]) -> None:
    with translation.override(PLAIN):
        assert told_in_words(told) == told
    with translation.override("zh-hans"):
        chinese = told_in_words(told)
    assert chinese != told and all(value in chinese for value in values)
