"""Requests to the provider, as Authlib's client makes them: bounded in time and size, to addresses that were looked at.

The issuer is named by the settings of the appliance, so its host may be in a private network. Hosts that the provider's
own document names may not, unless oidc_networks has them: or a provider could have services here asked. Plain HTTP goes
to this machine only.
"""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from django.utils.translation import gettext_noop

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.sign_in import is_loopback_name
from dashboard.outward.http_call import Call, Request
from dashboard.outward.targets import NotResolved, TargetRefused, resolve
from dashboard.sign_in.errors import BadAnswer, ProviderDown
from gantrymq.timeouts import timeout

T = TypeVar("T")

START_TIMEOUT_S = 8.0  # of the first step, which asks for one document: anyone may begin it, and each has a place
WHOLE_TIMEOUT_S = 20.0  # of all that the second step asks
AT_ONCE_MAX = 8
ANSWER_BYTES_MAX = 1 << 20
ANSWERED_WITH = gettext_noop("The provider answered with %(status)s.")
# What the host of the issuer may be beside public; never link-local: there clouds answer questions about the machine.
PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "::1", "fc00::/7")
)
_threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="sign-in")


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """An answer as Authlib reads it."""

    status_code: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def raise_for_status(self) -> None:
        if self.status_code >= HTTPStatus.BAD_REQUEST:
            raise ProviderDown(ANSWERED_WITH, status=self.status_code)


class Wire:
    """What Authlib takes for a session of HTTP. All but `close` block."""

    def __init__(self, settings: ApplianceConfig) -> None:
        self._settings = settings
        self._issuers_host = urlsplit(settings.oidc_issuer).hostname
        self._lock = threading.Lock()
        self._call: Call | None = None
        self._is_closed = False

    def post(self, url: str, data: Mapping[str, str], headers: Mapping[str, str], auth: Any) -> WireAnswer:
        """A form. auth: Authlib's, which adds the client's id and secret to the headers or to the form."""
        url, sent, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        return self._ask(Request("POST", url, sent, body.encode(), self._settings.oidc_trust))

    def get_json(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """An object. Raises ProviderDown, BadAnswer."""
        accept = {"Accept": "application/json"}
        answer = self._ask(Request("GET", url, accept | dict(headers or {}), None, self._settings.oidc_trust))
        answer.raise_for_status()
        if answer.status_code != HTTPStatus.OK:
            raise ProviderDown(ANSWERED_WITH, status=answer.status_code)
        try:
            found = answer.json()
        except ValueError as exc:
            raise BadAnswer(gettext_noop("The provider's answer can't be read.")) from exc
        if not isinstance(found, dict):
            raise BadAnswer(gettext_noop("The provider's answer can't be read."))
        return found

    def close(self) -> None:
        """End what is under way, from another thread."""
        with self._lock:
            self._is_closed = True
            if self._call is not None:
                self._call.close()

    def _ask(self, request: Request) -> WireAnswer:
        check_url(request.url)
        with self._lock:
            if self._is_closed:
                raise ProviderDown(gettext_noop("The provider took too long."))
            self._call = Call(request, self._resolve, ANSWER_BYTES_MAX)
        try:
            answer = self._call.send()
        except (TargetRefused, NotResolved) as exc:
            raise ProviderDown(gettext_noop("The provider cannot be reached: %(reason)s"), reason=exc) from exc
        except (OSError, http.client.HTTPException) as exc:
            text = gettext_noop("The provider does not answer (%(kind)s: %(reason)s).")
            raise ProviderDown(text, kind=type(exc).__name__, reason=exc) from exc
        if not answer.is_whole:
            raise BadAnswer(gettext_noop("The provider's answer is too long."))
        return WireAnswer(answer.status, answer.body)

    def _resolve(self, host: str, port: int) -> str:
        allowed = self._settings.oidc_networks_allowed
        return resolve(host, port, (*allowed, *PRIVATE) if host == self._issuers_host else allowed, "oidc_networks")


def check_url(url: str) -> str:
    """The URL, when it is one of https, or of this machine. Raises BadAnswer."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback_name(host))):
        raise BadAnswer(gettext_noop("The provider names an address that is not https."))
    return url


async def in_thread(settings: ApplianceConfig, do: Callable[[Wire], T], limit_s: float = WHOLE_TIMEOUT_S) -> T:
    """What `do` makes of its questions, which end after a while. Raises SignInProblem."""
    wire = Wire(settings)
    try:
        async with timeout(limit_s):
            return await asyncio.get_running_loop().run_in_executor(_threads, do, wire)
    except TimeoutError as exc:
        raise ProviderDown(gettext_noop("The provider does not answer in time.")) from exc
    finally:
        wire.close()
