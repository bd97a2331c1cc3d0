"""A provider on loopback that says what a test tells it to: what a real one never would, such as a forged token."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

CLIENT, SECRET = "gantry", "canary-client-secret"


@functools.cache
def _key(kid: str, number: int = 0) -> RSAKey:
    """The key of this id; number: there are several."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


class LyingProvider:
    """Answers discovery, keys, token and userinfo. Change its fields to change what it says."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.keys = KeySet([_key("first")])
        self.signs_with: Any = self.keys.keys[0]
        self.algorithm = "RS256"
        self.claims: dict[str, Any] = {
            "iss": issuer, "sub": "4711", "aud": CLIENT, "preferred_username": "grace", "groups": ["admins"],
        }  # fmt: skip
        self.token: dict[str, Any] = {"access_token": "an-access-token", "token_type": "Bearer", "expires_in": 60}
        self.userinfo: dict[str, Any] | None = None
        self.metadata: dict[str, Any] = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/auth",
            "token_endpoint": f"{issuer}/token",
            "jwks_uri": f"{issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        self.raw: dict[str, tuple[int, dict[str, str], bytes]] = {}  # path to status, headers, body
        self.nonce = ""  # of the begun sign-in: what the browser would have brought
        self.asked: list[tuple[str, dict[str, str], dict[str, list[str]]]] = []  # path, headers, form

    def id_token(self) -> str:
        now = int(time.time())
        claims = {"iat": now, "exp": now + 300, "nonce": self.nonce} | self.claims
        header = {"alg": self.algorithm, "kid": getattr(self.signs_with, "kid", None) or "first"}
        return jwt.encode(header, {key: value for key, value in claims.items() if value is not None},
                          self.signs_with, algorithms=[self.algorithm])  # fmt: skip

    def change_key(self, kid: str) -> None:
        """Another key from now on, which stands among the keys."""
        self.signs_with = _key(kid)
        self.keys = KeySet([self.signs_with])

    def forge(self, kid: str) -> None:
        """Sign with a key that does not stand among the keys, under this id."""
        self.signs_with = _key(kid, 1)

    def sign_with_secret(self) -> None:
        """As whoever has the client's secret could."""
        self.signs_with, self.algorithm = OctKey.import_key(SECRET), "HS256"

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if path in self.raw:
            return self.raw[path]
        found: Any = {
            "/.well-known/openid-configuration": self.metadata,
            "/keys": self.keys.as_dict(private=False),
            "/userinfo": self.userinfo,
        }.get(path)
        if path == "/token":
            found = {"id_token": self.id_token()} | self.token
        return (404, {}, b"") if found is None else (200, {}, json.dumps(found).encode())


@contextmanager
def lying_provider() -> Iterator[LyingProvider]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    provider = server.told = LyingProvider(f"http://127.0.0.1:{server.server_address[1]}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._answer(parse_qs(body.decode()))

    def _answer(self, form: dict[str, list[str]]) -> None:
        told: LyingProvider = self.server.told  # type: ignore[attr-defined]
        told.asked.append((self.path, dict(self.headers), form))
        status, headers, body = told.answer(self.path)
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""
