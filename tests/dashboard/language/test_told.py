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
