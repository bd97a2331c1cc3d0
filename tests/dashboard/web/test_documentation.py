"""GET /docs: the built site behind the log-in, nothing of the folder around it, and words where none was built."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from django.test import AsyncClient

from dashboard.web import documentation
from tests.dashboard.conftest import Client


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    (folder / "operations").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>GantryMQ</h1>")
    (folder / "operations" / "run.html").write_text("<h1>Install and run</h1>")
    (folder / "index.json").write_text("{}")
    (tmp_path / "secret_key").write_text("a secret")
    (folder / "way-out").symlink_to(tmp_path / "secret_key")
    monkeypatch.setattr(documentation, "SITE", folder)
    return folder


async def test_a_page_has_its_type_its_policy_and_is_asked_for_again(site: Path, log_in: Client) -> None:
    client = await log_in("reader")
    first = await client.get("/docs/")
    assert (first.status_code, first.content) == (200, b"<h1>GantryMQ</h1>")
    assert first.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self';" in first.headers["Content-Security-Policy"]
    assert first.headers["Cache-Control"] == "no-cache"
    page = await client.get("/docs/operations/run.html", headers={"accept-encoding": "gzip"})
    assert gzip.decompress(page.content) == b"<h1>Install and run</h1>"
    assert (await client.get("/docs/index.json")).headers["Content-Type"] == "application/json; charset=utf-8"
    same = await client.get("/docs/", headers={"if-none-match": first.headers["ETag"]})
    assert same.status_code == 304
    (site / "index.html").write_text("<h1>another version</h1>")
    assert (await client.get("/docs/")).content == b"<h1>another version</h1>"


async def test_the_address_without_a_slash_leads_to_the_first_page(site: Path, log_in: Client) -> None:
    client = await log_in("reader")
    moved = await client.get("/docs")
    assert (moved.status_code, moved.headers["Location"]) == (301, "/docs/")


async def test_s10_without_a_log_in_nobody_reads_it(site: Path, transactional_db: None) -> None:
    for address in ("/docs/", "/docs/operations/run.html"):
        answer = await AsyncClient().get(address)
        assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (302, "/login")


@pytest.mark.parametrize("path", ["../secret_key", "operations/../../secret_key", "way-out", "none.html", "operations"])
async def test_nothing_around_the_site_is_served(path: str, site: Path, log_in: Client) -> None:
    answer = await (await log_in()).get(f"/docs/{path}")
    assert answer.status_code in (301, 404)
    assert b"a secret" not in answer.content


async def test_a_checkout_that_built_none_says_what_builds_it(
    tmp_path: Path, log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documentation, "SITE", tmp_path / "none")
    answer = await (await log_in()).get("/docs/")
    assert answer.status_code == 404
    assert "Run deploy/site there" in answer.content.decode()


async def test_the_menu_and_the_palette_lead_to_it(site: Path, log_in: Client) -> None:
    client = await log_in("reader")
    assert 'href="/docs/"' in (await client.get("/tokens")).content.decode()
    found = (await client.get("/find?q=")).json()["found"]
    assert "/docs/" in [item["href"] for item in found]
