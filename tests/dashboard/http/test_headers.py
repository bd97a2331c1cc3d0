"""Headers of every answer, and the static files."""

from __future__ import annotations

import dataclasses
import gzip
import re
from typing import Any

import pytest
from django.templatetags.static import static
from django.test import AsyncClient

from tests.dashboard.conftest import Client


@pytest.mark.parametrize("address", ["/login", "/healthz", "/topics", "/nope", "/static/dashboard/app.css"])
async def test_s19_every_answer_carries_the_headers(address: str, transactional_db: None) -> None:
    headers = (await AsyncClient().get(address)).headers
    policy = headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    if not address.startswith("/static/"):
        assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("is_secure", [False, True])
async def test_what_came_over_tls_stays_there(is_secure: bool, settings: Any) -> None:
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, http_hsts_s=3600)
    answer = await AsyncClient().get("/login", secure=is_secure)
    assert [bool(cookie["secure"]) for cookie in answer.cookies.values()] == [is_secure]
    assert answer.headers.get("Strict-Transport-Security") == ("max-age=3600" if is_secure else None)
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, http_hsts_s=0)
    assert "Strict-Transport-Security" not in (await AsyncClient().get("/login", secure=is_secure)).headers


async def test_s19_no_page_asks_for_anything_from_elsewhere_or_inline(log_in: Client) -> None:
    page = (await (await log_in()).get("/tokens")).content.decode()
    assert not re.search(r'(?:src|href|action)="(?:https?:)?//', page)
    assert not re.search(r"<script(?![^>]*(?:src=|type=.application/json))", page)
    assert "<style" not in page and " style=" not in page and not re.search(r"\son\w+=", page)


async def test_a_hashed_file_may_be_kept_and_the_plain_name_may_not() -> None:
    address = static("dashboard/app.css")
    assert re.fullmatch(r"/static/[0-9a-f]{12}/dashboard/app\.css", address)
    client = AsyncClient()
    hashed = await client.get(address)
    assert hashed.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert hashed.headers["Content-Type"] == "text/css; charset=utf-8"
    plain = await client.get("/static/dashboard/app.css")
    assert plain.headers["Cache-Control"] == "no-cache"
    old = await client.get("/static/000000000000/dashboard/app.css")
    assert (old.status_code, old.headers["Cache-Control"]) == (200, "no-cache")
    same = await client.get(address, headers={"if-none-match": hashed.headers["ETag"]})
    assert same.status_code == 304
    small = await client.get(address, headers={"accept-encoding": "gzip"})
    assert gzip.decompress(small.content) == hashed.content


@pytest.mark.parametrize(
    "path", ["../settings.py", "dashboard/../../settings.py", "/etc/passwd", "dashboard/none.css", "%2e%2e/settings.py"]
)
async def test_only_static_files_are_served(path: str) -> None:
    response = await AsyncClient().get(f"/static/{path}")
    assert response.status_code in (400, 404)
    assert b"SECRET_KEY" not in response.content


async def test_s05_an_error_shows_no_stack_path_or_setting(log_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboard.people import views

    def broken(*args: object) -> None:
        raise RuntimeError("a secret detail of /srv/gantry")

    monkeypatch.setattr(views, "TokenForm", broken)
    client = await log_in()
    client.raise_request_exception = False
    response = await client.get("/tokens")
    assert response.status_code == 500
    page = response.content.decode()
    assert "Something went wrong in GantryMQ" in page
    assert f"search the log for this request ID: {response.headers['X-Request-ID']}" in page
    assert "Traceback" not in page and "secret detail" not in page and "dashboard/overview" not in page


async def test_a_foreign_host_name_is_refused() -> None:
    response = await AsyncClient().get("/healthz", headers={"host": "rebound.example"})
    assert response.status_code in (200, 400)  # the open health check reads no host
    assert (await AsyncClient().get("/login", headers={"host": "rebound.example"})).status_code == 400
