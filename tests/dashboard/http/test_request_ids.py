"""Each answer bears the id of its request, and each log line that was written for it."""

from __future__ import annotations

import logging
import re

import pytest
from django.test import AsyncClient

from appliance.process.logs import FORMAT
from dashboard.access import permissions
from dashboard.http.log_paths import PathsOnlyFormatter

GENERATED = re.compile(r"[0-9a-f]{32}")


@pytest.mark.parametrize("address", ["/healthz", "/login", "/topics", "/no-such-page", "/api/v1/topics", "/metrics"])
async def test_every_answer_has_an_id(address: str, transactional_db: None) -> None:
    answers = [await AsyncClient().get(address) for _ in range(2)]
    ids = [answer.headers["X-Request-ID"] for answer in answers]
    assert all(GENERATED.fullmatch(one) for one in ids) and ids[0] != ids[1]


@pytest.mark.parametrize("given", ["a", "0af7651916cd43dd8448eb211c80319c", "deploy:17.a_b-c", "x" * 64])
async def test_a_well_formed_id_is_kept(given: str, transactional_db: None) -> None:
    answer = await AsyncClient().get("/healthz", headers={"x-request-id": given})
    assert answer.headers["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", "-a", "a=b", "<b>", "a\xe4", "a event=forged"])
async def test_another_one_is_replaced(given: str, transactional_db: None) -> None:
    answer = await AsyncClient().get("/healthz", headers={"x-request-id": given})
    assert GENERATED.fullmatch(answer.headers["X-Request-ID"])


async def test_log_lines_of_a_request_bear_its_id(caplog: pytest.LogCaptureFixture, transactional_db: None) -> None:
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Lines()
    handler.setFormatter(PathsOnlyFormatter(FORMAT))
    permissions.logger.addHandler(handler)
    try:
        headers = {"host": "not-known.example", "x-request-id": "from-outside-1"}
        assert (await AsyncClient().get("/topics", headers=headers)).status_code == 400
    finally:
        permissions.logger.removeHandler(handler)
    assert [line for line in lines if "unknown host rejected" in line and line.endswith("request_id=from-outside-1")]
