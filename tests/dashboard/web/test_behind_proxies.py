"""The dashboard behind a real nginx and a real HAProxy that end TLS, set up as docs/operations/tls.md says."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import websocket

from appliance.bench.processes import free_ports
from tests.appliance_process import RunningAppliance
from tests.certificates import authority
from tests.conftest import require_tool, time_limit
from tests.docs.pages import ROOT
from tests.visitor import Visitor, admin_of
from tests.waiting import WITHIN_S

ELSEWHERE = "127.0.0.2"  # an address of this machine that is no trusted proxy
FORGED = "203.0.113.9"


@pytest.fixture(scope="module")
def gantry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAppliance]:
    data = tmp_path_factory.mktemp("proxied") / "data"
    with RunningAppliance(data, "--trusted-proxies", "127.0.0.1") as running:
        admin_of(running)
        yield running


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def proxy(
    request: pytest.FixtureRequest, gantry: RunningAppliance, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """host:port of a proxy with the configuration of the page."""
    folder, port = tmp_path_factory.mktemp(request.param), free_ports()
    command = {"nginx": nginx, "haproxy": haproxy}[request.param](folder, port, gantry.http)
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        await_listening(port, process, folder / "output")
        yield f"localhost:{port}"
    finally:
        process.terminate()
        process.wait(WITHIN_S)


def nginx(folder: Path, port: int, http: str) -> list[str]:
    program = require_tool("nginx", "a proxy that people use (Debian: apt install nginx-light)")
    server = snippet("nginx").replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    server = server.replace("/etc/ssl/gantry", str(authority())).replace("127.0.0.1:8080", http)
    temporary = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    logs = f"pid {folder / 'pid'};\nerror_log stderr;\ndaemon off;\nmaster_process off;\n"
    text = f"{logs}events {{}}\nhttp {{\naccess_log off;\n{temporary}{server}}}\n"
    (folder / "nginx.conf").write_text(text)
    return [str(program), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]


def haproxy(folder: Path, port: int, http: str) -> list[str]:
    program = require_tool("haproxy", "a proxy that people use (Debian: apt install haproxy)")
    both = folder / "server.pem"
    both.write_text("".join((authority() / name).read_text() for name in ("server.pem", "server.key")))
    text = snippet("haproxy").replace("bind :443", f"bind 127.0.0.1:{port}")
    text = text.replace("/etc/ssl/gantry", str(folder)).replace("127.0.0.1:8080", http)
    (folder / "haproxy.cfg").write_text(text)
    return [str(program), "-db", "-f", str(folder / "haproxy.cfg")]


def snippet(language: str) -> str:
    """The configuration that the page shows."""
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / "docs" / "operations" / "tls.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def await_listening(port: int, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + time_limit(20)
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.05)
    raise AssertionError(f"the proxy does not listen:\n{output.read_text()}")


def visitor(address: str, *, source: str = ELSEWHERE) -> Visitor:
    return Visitor(f"https://{address}", ssl.create_default_context(cafile=str(authority() / "ca.pem")), source=source)


def addresses_in_log(gantry: RunningAppliance, event: str) -> list[str]:
    """The clients' addresses of the log's lines of one kind."""
    log = (Path(gantry.data) / "logs" / "gantry.log").read_text()
    return [
        found[1]
        for line in log.splitlines()
        if f"event={event}" in line and (found := re.search(r"address=(\S+)", line))
    ]


def test_one_logs_in_over_tls(proxy: str) -> None:
    browser = visitor(proxy)
    answer = browser.log_in()
    assert (answer.status, answer.headers["Location"]) == (302, "/")
    assert browser.get("/tokens").status == 200
    assert all("Secure" in line for line in browser.set_cookies.values())


def test_the_live_socket_opens_for_the_page_that_the_browser_sees(proxy: str) -> None:
    browser = visitor(proxy)
    browser.log_in()
    with contextlib.closing(browser.live()) as live:
        live.send('{"subscribe": ["overview"]}')
        assert "overview" in live.recv()
    for foreign in (browser.base.replace("https", "http"), "https://evil.example", browser.base + "1"):
        with pytest.raises(websocket.WebSocketBadStatusException):
            browser.live(origin=foreign)


def test_the_log_has_the_clients_own_address(gantry: RunningAppliance, proxy: str) -> None:
    browser = visitor(proxy)
    browser.headers["X-Forwarded-For"] = FORGED
    assert browser.log_in("wrong").status == 422
    assert addresses_in_log(gantry, "login_failed")[-1] == ELSEWHERE


def test_a_strangers_own_words_are_ignored(gantry: RunningAppliance) -> None:
    browser = Visitor(f"http://{gantry.http}", source=ELSEWHERE)
    browser.headers |= {"X-Forwarded-For": FORGED, "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
    assert browser.log_in("wrong").status == 422
    assert addresses_in_log(gantry, "login_failed")[-1] == ELSEWHERE
    assert not any("Secure" in line for line in browser.set_cookies.values())
    browser.base = f"https://{gantry.http}"  # what a page behind TLS would send as its origin
    form = Visitor(f"http://{gantry.http}", source=ELSEWHERE)
    form.headers |= browser.headers | {"Referer": browser.base}
    page = form.get("/login")
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token is not None
    body = f"csrfmiddlewaretoken={token[1]}&username=admin&password=x".encode()
    kind = "application/x-www-form-urlencoded"
    assert form.request("POST", "/login", body, Origin=browser.base, Content_Type=kind).status == 403


def test_a_name_that_is_not_ours_stays_refused(gantry: RunningAppliance) -> None:
    browser = Visitor(f"http://{gantry.http}")  # from a trusted address
    assert browser.get("/login", X_Forwarded_Host="evil.example").status == 400
    assert browser.get("/login", X_Forwarded_Host="localhost:444").status == 200
