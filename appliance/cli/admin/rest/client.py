"""The dashboard's REST as `gantry admin` asks it: one connection a request, no redirects, bounded answers.

The token comes from GANTRY_TOKEN or from a file, never from the command line, where ps would show it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import io
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import orjson

from appliance.settings.variables import TOKEN_VARIABLE
from gantrymq.byte_size import readable
from gantrymq.errors import ConfigError, GantryError
from gantrymq.timeouts import timeout

API = "/api/v1"
ANSWER_BYTES_MAX = 64 << 20
TOKEN_CHARS_MAX = 256
PORTS = {"http": 80, "https": 443}
NO_TOKEN = (
    f"an API token is required: set {TOKEN_VARIABLE} or give --token-file FILE. Create one on the page Tokens, or with "
    "`gantry users token NAME` on the dashboard's machine"
)


class NotAnswered(GantryError):
    """There is no dashboard, or it did not answer as one does."""


class Refused(GantryError):
    """The dashboard said no. status: of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Rest:
    """`base`: the dashboard's address, "https://host:8080". token: what is sent as `Authorization: Bearer …`."""

    def __init__(self, base: str, token: str, *, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self.base = base
        self._token = token
        self._timeout_s = timeout_s
        self._tls = tls

    async def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """One request to `path` below /api/v1; its answer, None when that is empty.

        Raises NotAnswered, Refused, ConfigError for fields that can't be taken.
        """
        given = {key: value for key, value in (query or {}).items() if value is not None}
        target = API + path + (f"?{urlencode(given)}" if given else "")
        try:
            async with timeout(self._timeout_s):
                status, location, content = await self._exchange(method, target, body)
        except TimeoutError:
            raise NotAnswered(f"{self.base} did not answer within {self._timeout_s:g} s") from None
        except (OSError, EOFError, ValueError, http.client.HTTPException) as exc:
            raise NotAnswered(self._why(exc)) from exc
        if status >= 300:
            raise self._refusal(status, location, content)
        if not content:
            return None
        try:
            return orjson.loads(content)
        except ValueError:
            raise NotAnswered(f"{self.base} answers, but not as a dashboard does") from None

    async def _exchange(self, method: str, target: str, body: Any) -> tuple[int, str, bytes]:
        """Status, the header Location, content. Raises OSError, ValueError, HTTPException."""
        url = urlsplit(self.base)
        assert url.hostname is not None
        content = b"" if body is None else orjson.dumps(body)
        head = {
            "Host": url.netloc, "Authorization": f"Bearer {self._token}", "Accept": "application/json",
            "User-Agent": "gantry-admin", "Content-Length": str(len(content)), "Connection": "close",
        } | ({} if body is None else {"Content-Type": "application/json"})  # fmt: skip
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port or PORTS[url.scheme], ssl=self._tls if url.scheme == "https" else None
        )
        try:
            writer.write("\r\n".join(lines).encode("ascii") + content)
            await writer.drain()
            raw = bytearray()
            while part := await reader.read(1 << 16):
                raw += part
                if len(raw) > ANSWER_BYTES_MAX:
                    raise ValueError(f"the answer is longer than {readable(ANSWER_BYTES_MAX)}")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        answer = http.client.HTTPResponse(cast(Any, _Received(bytes(raw))), method=method)
        answer.begin()
        return answer.status, answer.headers.get("Location", ""), answer.read()

    def _why(self, failure: Exception) -> str:
        if isinstance(failure, ssl.SSLCertVerificationError):
            return (
                f"the certificate of {self.base} is not trusted: {failure.verify_message}; "
                "--tls-trust FILE names the certificates to trust"
            )
        if isinstance(failure, ssl.SSLError | ConnectionResetError) and self._tls is not None:
            return f"{self.base} speaks no TLS, it seems: is it http://?"
        if isinstance(failure, http.client.HTTPException | ValueError):
            return f"{self.base} answers, but not as a dashboard does; --dashboard names another"
        number = getattr(failure, "errno", None)
        reason = os.strerror(number).lower() if number and number > 0 else "no such host"
        if isinstance(failure, EOFError | ConnectionError) and number is None:
            reason = "it hung up"
        return f"no dashboard answers at {self.base} ({reason}); --dashboard names another"

    def _refusal(self, status: int, location: str, content: bytes) -> GantryError:
        try:
            told = orjson.loads(content)
            sentence, fields = str(told["detail"]), dict(told.get("fields") or {})
        except (ValueError, KeyError, TypeError):
            sentence, fields = "", {}
        if 300 <= status < 400:
            return Refused(status, f"{self.base} sends on to {location or 'another place'}: name that with --dashboard")
        if status == 401:
            return Refused(status, f"the token is unknown, revoked or over; {NO_TOKEN}")
        if fields:
            parts = (f"{name}: {' '.join(map(str, texts))}" for name, texts in sorted(fields.items()))
            return ConfigError(f"{sentence.rstrip('.')}: {'; '.join(parts)}")
        return Refused(status, sentence or f"{self.base} answered {status}, and not as a dashboard does")


class _Received:
    """What came in, as http.client reads it."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._raw)


@contextlib.asynccontextmanager
async def open_rest(arguments: argparse.Namespace) -> AsyncIterator[Rest]:
    """The REST of the dashboard that the options name. Raises ConfigError."""
    tls = None
    if urlsplit(arguments.dashboard).scheme == "https":
        try:
            tls = ssl.create_default_context(cafile=arguments.tls_trust)
            if arguments.tls_cert:
                tls.load_cert_chain(arguments.tls_cert, arguments.tls_key)
        except OSError as exc:
            raise ConfigError(f"certificates can't be read: {exc.strerror or exc}") from exc
    yield Rest(arguments.dashboard, read_token(arguments.token_file), timeout_s=arguments.timeout, tls=tls)


def read_token(file: Path | None) -> str:
    """The first line of the file, or what GANTRY_TOKEN says. Raises ConfigError when there is none, or it is none."""
    text, source = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    if file is not None:
        try:
            with file.open(encoding="ascii") as lines:
                text, source = lines.readline(TOKEN_CHARS_MAX + 2), str(file)
        except (OSError, ValueError) as exc:
            raise ConfigError(f"{file} can't be read: {getattr(exc, 'strerror', None) or 'it is not a text'}") from exc
    token = text.strip()
    if not token:
        raise ConfigError(NO_TOKEN if file is None else f"{file} holds no token in its first line")
    if len(token) > TOKEN_CHARS_MAX or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{source} holds no API token: these begin with gmq_")
    return token
