"""Bodies and heads: what a stranger may send, and that it touches no disk."""

from __future__ import annotations

import base64
import os
from contextlib import closing
from pathlib import Path

import pytest
import websocket

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.web.limits import HEAD_BYTES_MAX, HEADERS_MAX, UNKNOWN_BODY_BYTES_MAX, WEBSOCKET_BYTES_MAX
from tests.appliance_process import RunningAppliance
from tests.visitor import Visitor, talk, web_process

HUGE_BYTES = 1_900_000_000
SENT_BYTES_MAX = 64 << 20  # what sockets, and reading on after the refusal, take of it
WRITTEN_BYTES_MAX = 8 << 20
PIECE = b"x" * 65536
CHUNK = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
BODY_BYTES_MAX = ApplianceConfig(data=Path("data")).http_body_bytes_max


def head(path: str, *lines: str) -> str:
    return "\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *lines, "", ""])


class WrittenBytes:
    """What the web process wrote into files and sockets while the block ran, and the files it had in its TMPDIR."""

    def __init__(self, gantry: RunningAppliance, temporary_folder: Path) -> None:
        self._process = web_process(gantry)
        self._folder = temporary_folder

    def __enter__(self) -> WrittenBytes:
        self._before = self._process.io_counters().write_chars
        return self

    def __exit__(self, *_: object) -> None:
        self.total = self._process.io_counters().write_chars - self._before
        links = Path(f"/proc/{self._process.pid}/fd").iterdir()
        self.files = [name for name in map(_target, links) if name.startswith(str(self._folder))]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # closed meanwhile


@pytest.mark.parametrize(
    "path", ["/login", "/api/v1/topics", "/nope", "/static/dashboard/app.css", "/live", "/first-run"]
)
def test_a_strangers_huge_body_is_refused_by_its_length_alone(gantry: RunningAppliance, path: str) -> None:
    assert talk(gantry.http, head(path, f"Content-Length: {HUGE_BYTES}")).status == 413


@pytest.mark.parametrize(
    ("line", "piece"), [(f"Content-Length: {HUGE_BYTES}", PIECE), ("Transfer-Encoding: chunked", CHUNK)]
)
@pytest.mark.parametrize("path", ["/login", "/api/v1/topics"])
def test_a_strangers_huge_body_touches_no_disk(
    gantry: RunningAppliance, temporary_folder: Path, path: str, line: str, piece: bytes
) -> None:
    with WrittenBytes(gantry, temporary_folder) as written:
        answer = talk(gantry.http, head(path, line), piece * 16, body_bytes=HUGE_BYTES)
    assert answer.status == 413
    assert answer.sent_bytes < SENT_BYTES_MAX
    assert written.total < WRITTEN_BYTES_MAX and written.files == []
    assert list(temporary_folder.iterdir()) == []


@pytest.mark.parametrize("credential", ["Cookie: {}=abcdefabcdef", "Authorization: Bearer gmq_abc", "Cookie: a=b"])
@pytest.mark.parametrize("line", [f"Content-Length: {UNKNOWN_BODY_BYTES_MAX + 1}", "Transfer-Encoding: chunked"])
def test_a_made_up_session_or_token_opens_no_larger_body(
    gantry: RunningAppliance, administrator: Visitor, credential: str, line: str
) -> None:
    [name] = [name for name in administrator.cookies if "session" in name]
    answer = talk(gantry.http, head("/login", line, credential.format(name)), CHUNK, body_bytes=len(CHUNK) * 3)
    assert answer.status == 413


def test_a_refusal_for_programs_is_a_problem_document(gantry: RunningAppliance) -> None:
    answer = talk(gantry.http, head("/api/v1/topics", "Content-Length: 100000"))
    assert answer.text.endswith('"detail": "A body of more than 65536 bytes needs a session or an API token."}')
    assert "Content-Type: application/problem+json" in answer.text


def test_a_small_body_of_a_stranger_is_read(gantry: RunningAppliance) -> None:
    line = f"Content-Length: {UNKNOWN_BODY_BYTES_MAX}"
    answer = talk(gantry.http, head("/login", line, "Connection: close"), PIECE, body_bytes=UNKNOWN_BODY_BYTES_MAX)
    assert answer.status == 403  # by the guard of forms, which has seen it


def test_who_is_logged_in_may_send_as_much_as_the_setting_says(
    gantry: RunningAppliance, administrator: Visitor, temporary_folder: Path
) -> None:
    body = base64.b64encode(os.urandom(2_000_000)).decode()
    with WrittenBytes(gantry, temporary_folder) as written:
        answer = administrator.send_message("large", body)
    assert answer.status == 302, answer.text[:2000]
    assert written.files == []
    assert administrator.get("/topic/large").text.count(body[:40]) == 1


def test_nobody_may_send_more_than_the_setting_says(gantry: RunningAppliance, administrator: Visitor) -> None:
    cookie = f"Cookie: {administrator.cookie_header()}"
    assert talk(gantry.http, head("/login", f"Content-Length: {BODY_BYTES_MAX + 1}", cookie)).status == 413
    chunked = talk(
        gantry.http, head("/login", "Transfer-Encoding: chunked", cookie), CHUNK * 16, body_bytes=BODY_BYTES_MAX * 2
    )
    assert chunked.status == 413 and f"larger than {BODY_BYTES_MAX} bytes" in chunked.text


def test_a_body_is_asked_for_only_when_it_will_be_read(gantry: RunningAppliance, administrator: Visitor) -> None:
    expect, cookie = "Expect: 100-continue", f"Cookie: {administrator.cookie_header()}"
    large = f"Content-Length: {UNKNOWN_BODY_BYTES_MAX + 1}"
    assert talk(gantry.http, head("/login", large, expect)).status == 413
    assert talk(gantry.http, head("/login", large, expect, cookie)).status == 100
    assert talk(gantry.http, head("/login", "Content-Length: 5", expect)).status == 100


@pytest.mark.parametrize(
    "lines",
    [
        [f"X: {'y' * HEAD_BYTES_MAX}"],
        [f"X-{number}: {'y' * 180}" for number in range(HEADERS_MAX - 5)],
        [f"X-{number}: y" for number in range(HEADERS_MAX + 1)],
    ],
)
def test_a_large_head_is_refused_with_a_reason(gantry: RunningAppliance, lines: list[str]) -> None:
    answer = talk(gantry.http, head("/login", *lines))
    assert answer.status == 431 and "head is" in answer.text


def test_what_is_not_http_is_refused_with_a_reason(gantry: RunningAppliance) -> None:
    assert "This is not HTTP." in talk(gantry.http, "what is this\n\n").text


def test_a_websocket_takes_small_messages_only(gantry: RunningAppliance, administrator: Visitor) -> None:
    with closing(administrator.live()) as live:
        live.send('{"subscribe": ["overview"]}')
        assert "overview" in live.recv()
        with pytest.raises((websocket.WebSocketException, ConnectionError)):
            live.send("x" * (WEBSOCKET_BYTES_MAX + 1))
            while "overview" in live.recv():
                pass
            raise websocket.WebSocketConnectionClosedException  # a close frame: recv gives an empty text


def test_a_head_can_not_move_the_pages(gantry: RunningAppliance) -> None:
    answer = talk(gantry.http, "GET /topics HTTP/1.1\nHost: localhost\nDaphne-Root-Path: //evil.example\n\n")
    assert answer.status == 302 and "evil" not in answer.text
