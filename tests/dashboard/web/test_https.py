"""S41. The dashboard over TLS, on the same port as without: what is served how, cookies, new certificates."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from appliance.cli.banner import ready_line
from appliance.settings.appliance_config import ApplianceConfig
from dashboard.web.hosts import place_over_tls
from tests.appliance_process import RunningAppliance
from tests.certificates import authority
from tests.conftest import time_limit
from tests.visitor import Visitor, admin_of, talk


def trust(name: str = "ours") -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority(name) / "ca.pem"))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of certificates that a test may change."""
    folder = tmp_path_factory.mktemp("certificates")
    use(folder, "ours")
    return folder


def use(folder: Path, name: str) -> None:
    for file in ("server.key", "server.pem", "ca.pem"):
        shutil.copy(authority(name) / file, folder / file)


def tls_options(folder: Path) -> list[str]:
    files = {"cert": "server.pem", "key": "server.key", "trust": "ca.pem"}
    return [part for name, file in files.items() for part in (f"--tls-{name}", str(folder / file))]


@pytest.fixture(scope="module")
def gantry(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[RunningAppliance]:
    """One that takes both."""
    with RunningAppliance(tmp_path_factory.mktemp("https") / "data", *tls_options(certificates)) as running:
        yield running


@pytest.fixture(scope="module")
def administrator(gantry: RunningAppliance) -> Visitor:
    assert f"First visit  https://{gantry.http}/first-run?token=" in gantry.output
    return admin_of(gantry, trust())


def test_pages_and_the_live_socket_come_over_tls(gantry: RunningAppliance, administrator: Visitor) -> None:
    assert gantry.url.startswith("https://")
    browser = Visitor(gantry.url, trust())
    assert browser.log_in().status == 302
    assert len(browser.set_cookies) >= 2 and all("Secure" in line for line in browser.set_cookies.values())
    with closing(browser.live()) as live:
        live.send('{"subscribe": ["overview"]}')
        assert "overview" in live.recv()


def test_large_bodies_come_over_tls_and_strangers_do_not(gantry: RunningAppliance, administrator: Visitor) -> None:
    body = base64.b64encode(os.urandom(2_000_000)).decode()
    assert administrator.send_message("large", body).status == 302
    assert administrator.get("/topic/large").text.count(body[:40]) == 1
    assert Visitor(gantry.url, trust()).request("POST", "/login", b"x" * 70_000).status == 413


@pytest.mark.parametrize(
    "path", ["/", "/login?next=%2Ftopics", "/first-run?token=a", "/static/dashboard/app.css", "/live"]
)
def test_a_plain_page_is_elsewhere(gantry: RunningAppliance, path: str) -> None:
    plain = Visitor(f"http://{gantry.http}")
    answer = plain.get(path)
    assert (answer.status, answer.headers["Location"]) == (308, f"https://{gantry.http}{path}")
    assert plain.cookies == {} and answer.headers["Cache-Control"] == "no-store"


def test_a_plain_form_is_not_read(gantry: RunningAppliance) -> None:
    head = f"POST /login HTTP/1.1\nHost: {gantry.http}\nContent-Length: 1000\nExpect: 100-continue\n\n"
    assert talk(gantry.http, head).status == 308


def test_programs_may_go_on_without_tls_unless_it_is_enforced(gantry: RunningAppliance) -> None:
    plain = Visitor(f"http://{gantry.http}")
    assert plain.get("/healthz").text == "ok\n"
    assert plain.get("/api/v1/topics").status == 401


def test_enforcing_serves_nothing_without_tls(tmp_path: Path) -> None:
    options = [*tls_options(authority()), "--tls-mode", "enforcing"]
    with RunningAppliance(tmp_path / "data", *options, environment={"GANTRY_HTTP_HSTS_S": "3600"}) as gantry:
        plain = Visitor(f"http://{gantry.http}")
        for path in ("/healthz", "/api/v1/topics", "/login"):
            answer = plain.get(path)
            assert (answer.status, answer.headers["Location"]) == (308, f"{gantry.url}{path}")
        secure = Visitor(gantry.url, trust())
        assert secure.get("/healthz").headers["Strict-Transport-Security"] == "max-age=3600"


@pytest.mark.parametrize(
    ("host", "target", "place"),
    [
        (b"localhost:8080", b"/a?b=c", "https://localhost:8080/a?b=c"),
        (b"evil.example", b"/a", "https://127.0.0.1:80/a"),
        (b"", b"/a", "https://127.0.0.1:80/a"),
        (b"localhost", b"//evil.example/a", "https://localhost/evil.example/a"),
        (b"localhost", b"http://evil.example/a", "https://localhost/"),
        (b"localhost", b"/\xff", "https://localhost/"),
        (b"localhost\xff", b"/", "https://127.0.0.1:80/"),
    ],
)
def test_nobody_is_sent_elsewhere(host: bytes, target: bytes, place: str) -> None:
    assert place_over_tls(host, target, "127.0.0.1:80") == place


def test_a_new_certificate_is_taken_up_and_a_broken_one_is_not(gantry: RunningAppliance, certificates: Path) -> None:
    url, log = gantry.url, Path(gantry.data) / "logs" / "gantry.log"
    open_before = Visitor(url, trust())
    (certificates / "server.pem").write_text("nonsense")
    assert open_before.get("/healthz").status == 200  # by the old one
    assert "event=tls_certificate_unusable" in log.read_text()
    use(certificates, "stranger")
    deadline = time.monotonic() + time_limit(10)
    while _shown(gantry.http) != _first_certificate("stranger") and time.monotonic() < deadline:
        time.sleep(0.1)
    try:
        assert Visitor(url, trust("stranger")).get("/healthz").status == 200
    finally:
        use(certificates, "ours")


def test_a_connection_that_is_neither_gets_an_answer(gantry: RunningAppliance) -> None:
    assert talk(gantry.http, "nonsense\n\n").status == 400
    host, _, port = gantry.http.rpartition(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(b"\x16\x03\x01\x00\x05nonsense")
        assert connection.recv(100)[:1] in (b"", b"\x15")  # closed, or a TLS alert
    assert Visitor(gantry.url, trust()).get("/healthz").status == 200


def test_scripts_are_told_the_scheme(tmp_path: Path) -> None:
    plain = ApplianceConfig(data=tmp_path)
    assert " http=127.0.0.1:8080 " in ready_line(plain)
    secure = ApplianceConfig(data=tmp_path, tls_cert=str(authority() / "server.pem"))
    assert " https=127.0.0.1:8080 " in ready_line(secure)
    disabled = ApplianceConfig(data=tmp_path, tls_cert=str(authority() / "server.pem"), tls_mode="disabled")
    assert " http=127.0.0.1:8080 " in ready_line(disabled)


def _shown(address: str) -> bytes:
    host, _, port = address.rpartition(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port)), timeout=30))


def _first_certificate(name: str) -> bytes:
    text = (authority(name) / "server.pem").read_text()
    end = "-----END CERTIFICATE-----"
    return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERTIFICATE") : text.index(end) + len(end)])
