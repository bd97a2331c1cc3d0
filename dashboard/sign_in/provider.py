"""What a provider says of itself (discovery), and its keys. Both are kept for a while; an unknown key is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from dashboard.sign_in.errors import BadAnswer
from dashboard.sign_in.wire import Wire, check_url

KEPT_S = 600.0
KEYS_EACH_S = 10.0  # tokens with unknown keys make no more questions than this
KEYS_MAX = 100
# Signatures that only the provider can make. With HS256 all who have the client's secret could make them, too.
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Metadata:
    """The parts of the discovery document that are used; "" is not given."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    end_session_endpoint: str
    algorithms: tuple[str, ...]
    secret_in_form: bool  # client_secret_post and not client_secret_basic
    tells_issuer: bool  # RFC 9207: the answer by the browser names the issuer


class Provider:
    """Of one issuer. Its calls block; several threads may use it at once."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer = issuer
        self._clock = clock
        self._metadata: tuple[float, Metadata] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._wanted_at = clock() - KEYS_EACH_S  # when newer keys were asked for

    @property
    def known(self) -> Metadata | None:
        """What it said last, without asking."""
        return self._metadata[1] if self._metadata is not None else None

    def metadata(self, wire: Wire) -> Metadata:
        """Raises ProviderDown, BadAnswer."""
        kept = self._metadata
        if kept is None or self._clock() - kept[0] > KEPT_S:
            told = wire.get_json(self.issuer.rstrip("/") + "/.well-known/openid-configuration")
            kept = self._metadata = self._clock(), _metadata(told, self.issuer)
        return kept[1]

    def keys(self, wire: Wire, *, beside: KeySet | None = None) -> KeySet:
        """The keys. beside: those without the key in question, so newer ones are wanted."""
        kept = self._keys
        now = self._clock()
        is_wanted = kept is not None and beside is kept[1] and now - self._wanted_at >= KEYS_EACH_S
        if is_wanted:
            self._wanted_at = now
        if kept is None or is_wanted or now - kept[0] >= KEPT_S:
            told = wire.get_json(self.metadata(wire).jwks_uri)
            kept = self._keys = now, _keys(told)
        return kept[1]


def _metadata(told: dict[str, Any], issuer: str) -> Metadata:
    if told.get("issuer") != issuer:
        text = gettext_noop("The provider calls itself “%(issuer)s”; the setting oidc_issuer differs.")
        raise BadAnswer(text, issuer=str(told.get("issuer"))[:200])
    found = {}
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        found[name] = check_url(_text(told, name))
    for name in ("userinfo_endpoint", "end_session_endpoint"):
        found[name] = check_url(url) if (url := _text(told, name)) else ""
    offered = told.get("id_token_signing_alg_values_supported") or ["RS256"]
    methods = told.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return Metadata(
        issuer=issuer, **found,
        algorithms=tuple(name for name in ALGORITHMS if name in offered),
        secret_in_form="client_secret_basic" not in methods and "client_secret_post" in methods,
        tells_issuer=told.get("authorization_response_iss_parameter_supported") is True,
    )  # fmt: skip


def _keys(told: dict[str, Any]) -> KeySet:
    rows = told.get("keys")
    if not isinstance(rows, list) or len(rows) > KEYS_MAX:
        raise BadAnswer(gettext_noop("The provider's keys can't be read."))
    try:
        return KeySet.import_key_set({"keys": [row for row in rows if row.get("use", "sig") == "sig"]})
    except (JoseError, ValueError, TypeError, AttributeError) as exc:
        raise BadAnswer(gettext_noop("The provider's keys can't be read.")) from exc


def _text(told: dict[str, Any], name: str) -> str:
    value = told.get(name, "")
    return value if isinstance(value, str) else ""
