"""Addresses of 0.1.0's pages."""

from __future__ import annotations

import pytest

from tests.dashboard.conftest import Client

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/people", "/users"),
        ("/people/7", "/users/7"),
        ("/broker/broker-a/config?show=differing&q=disk", "/broker/broker-a/settings?show=differing&q=disk"),
        ("/broker/broker-a/succession", "/broker/broker-a/master"),
    ],
)
async def test_a_bookmark_of_0_1_0_leads_to_the_page_where_it_is_now(log_in: Client, old: str, new: str) -> None:
    response = await (await log_in("reader")).get(old)
    assert (response.status_code, response.headers["Location"]) == (301, new)
