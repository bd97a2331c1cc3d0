"""S62: a whole run, at the most talkative level, leaves no secret in any log or on the terminal."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
import websocket

from appliance import certificates
from gantrymq import AdminClient, Credentials, Message, Producer, TlsConfig
from gantrymq.errors import GantryError
from tests.appliance_process import RunningAppliance
from tests.visitor import Answer, Visitor

PASSWORD, WEAK, WRONG = "nine lives of a crane", "password1", "nine wives of a crane"
FORM = "application/x-www-form-urlencoded"
SHORTEST = 8  # characters; what is shorter is no secret


class TellingVisitor(Visitor):
    """Remembers whatever it was given that nobody else may know."""

    def __init__(self, base: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(base, tls)
        self.secrets: set[str] = set()

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        answer = super().request(method, path, body, **headers)
        self.secrets |= set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.text))
        self.secrets |= set(re.findall(r"gmq_[\w-]{40,}", answer.text))
        return answer

    def _keep_cookies(self, headers: http.client.HTTPMessage) -> None:
        super()._keep_cookies(headers)
        self.secrets |= {value for name, value in self.cookies.items() if "theme" not in name}


def first_run(visitor: Visitor, token: str) -> None:
    """The link, used wrongly in every way before it is used well."""
    address = f"/first-run?token={token}"
    weak = {"username": "ada", "password": WEAK, "again": WEAK, "token": token}
    assert visitor.submit(address, weak, form=address).status == 422
    assert visitor.request("PUT", address).status in (403, 405)
    assert visitor.request("POST", address, urlencode(weak).encode(), Content_Type=FORM).status == 403
    referer = {"Referer": f"https://elsewhere.example{address}", "Content_Type": FORM, "Origin": "null"}
    assert visitor.request("POST", address, urlencode(weak).encode(), **referer).status == 403
    assert visitor.request("GET", address, Host="elsewhere.example").status == 400
    assert visitor.get(f"/nothing?token={token}").status == 404
    assert visitor.get(f"/login/first-run%3Ftoken={token}").status == 404
    good = {"username": "ada", "password": PASSWORD, "again": PASSWORD, "token": token}
    assert visitor.submit(address, good).status == 302
    assert visitor.request("POST", address, urlencode(weak).encode(), Content_Type=FORM).status == 403


def sessions(visitor: Visitor) -> None:
    """Log out and in, with mistakes; a live socket."""
    assert visitor.submit("/logout", {}, page="/tokens").status == 302
    assert visitor.get(f"/?next={PASSWORD.replace(' ', '+')}").status == 302
    assert visitor.submit("/login", {"username": "ada", "password": WRONG}).status == 422
    assert visitor.submit("/login", {"username": PASSWORD, "password": "ada"}).status == 422, "in the wrong field"
    assert visitor.submit("/login", {"username": "ada", "password": PASSWORD}).status == 302
    url = urlsplit(visitor.base)._replace(scheme="ws" if visitor.base.startswith("http:") else "wss").geturl()
    for cookie in (visitor.cookie_header(), "gantry_session=wrong"):
        options = {"origin": visitor.base, "cookie": cookie, "sslopt": {"context": visitor.tls}, "timeout": 30}
        try:
            socket = websocket.create_connection(f"{url}/live?token={visitor.cookies['secret']}", **options)
        except websocket.WebSocketBadStatusException:
            assert cookie != visitor.cookie_header()
            continue
        socket.send(json.dumps({"subscribe": ["overview", f"topic:{PASSWORD}"]}))
        assert socket.recv()
        socket.close()


def rest(visitor: Visitor) -> str:
    """A token, and calls with it: good ones, and every way to go wrong."""
    page = visitor.submit("/tokens", {"name": "CI", "scope": "config", "life_days": "7"})
    shown = visitor.get(page.headers["Location"]).text
    [secret] = set(re.findall(r"gmq_[\w-]{40,}", shown))
    program = Visitor(visitor.base, visitor.tls)
    for method, path, bearer, status in (
        ("GET", "/api/v1/topics", secret, 200),
        ("GET", f"/api/v1/topics?access_token={secret}", secret, 200),
        ("GET", f"/api/v1/topics?access_token={secret}", "wrong", 401),
        ("PATCH", f"/api/v1/topics?access_token={secret}", secret, 405),
        ("GET", f"/api/v1/topics/none?access_token={secret}", secret, 404),
        ("GET", f"/api/v1/topics?limit={secret}", secret, 422),
        ("GET", f"/api/v1/nothing?access_token={secret}", secret, 404),
    ):
        answer = program.request(method, path, Authorization=f"Bearer {bearer}")
        assert answer.status == status, (method, path, answer)
    return secret


async def messages(gantry: RunningAppliance, credentials: Credentials, tls: TlsConfig) -> None:
    """Clients with the right account, and with a wrong one."""
    async with AdminClient(gantry.namesrv, credentials=credentials, tls=tls) as admin:
        assert await admin.brokers.runtime_info(gantry.broker)
    async with Producer(gantry.namesrv, group="pg", credentials=credentials, tls=tls) as producer:
        await producer.send(Message("orders", b"body"))
    stranger = Credentials(credentials.access_key, "guessed-secret-of-a-stranger")
    async with AdminClient(gantry.namesrv, credentials=stranger, tls=tls) as admin:
        with pytest.raises(GantryError):
            await admin.brokers.runtime_info(gantry.broker)


async def test_s62_no_secret_of_a_whole_run_stands_in_a_log(tmp_path: Path) -> None:
    data, keys = tmp_path / "data", tmp_path / "tls"
    certificates.create(keys, ["localhost", "127.0.0.1"])
    options = [
        f"--tls-cert={keys / 'server.pem'}",
        f"--tls-key={keys / 'server.key'}",
        f"--tls-trust={keys / 'ca.pem'}",
    ]
    with RunningAppliance(data, "--accounts", "--log-level", "DEBUG", *options) as gantry:
        link = re.search(r"(https?://\S+)/first-run\?token=(\S+)", gantry.output)
        assert link is not None
        visitor = TellingVisitor(link[1], ssl.create_default_context(cafile=str(keys / "ca.pem")))
        first_run(visitor, link[2])
        visitor.cookies["secret"] = "a-cookie-that-is-none-of-ours"
        sessions(visitor)
        token = rest(visitor)
        own = Credentials.from_file(data / "accounts" / "appliance.yml")
        await messages(gantry, own, TlsConfig(trust_cert=keys / "ca.pem"))
        assert gantry.stop() == 0
    secrets = visitor.secrets | {link[2], PASSWORD, WEAK, WRONG, token, own.secret_key, "guessed-secret-of-a-stranger"}
    secrets |= {visitor.cookies["secret"], (data / "dashboard" / "secret_key").read_text().strip()}
    secrets |= set((keys / "server.key").read_text().splitlines()[1:-1])
    secrets = {secret for secret in secrets if len(secret) >= SHORTEST}  # a cookie that was taken back is empty
    assert len(secrets) > 20

    logs = {path.relative_to(data).as_posix(): path.read_text() for path in data.rglob("*.log*")}
    assert {"logs/gantry.log", "logs/broker-a.log", "logs/namesrv.log"} <= set(logs)
    logs["the terminal"] = gantry.output.replace(link[0], "", 1)
    for variant in (lambda text: text, lambda text: text.replace(" ", "+"), lambda text: text.replace(" ", "%20")):
        found = {(name, secret) for name, text in logs.items() for secret in secrets if variant(secret) in text}
        assert found == set()
    assert all(f"{method} /first-run" in logs["logs/gantry.log"] for method in ("POST", "PUT")), "and they were told"
    assert "login_failed" in logs["logs/gantry.log"]
