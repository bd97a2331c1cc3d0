"""The two steps of a sign-in: send the browser to the provider, and take what it brings back.

Between them the browser keeps state, nonce and the verifier of PKCE in a signed cookie, so a flood of begins leaves
nothing here. What it brings back counts only with that cookie, with the provider's own answer to the code, and with a
signature, an issuer, an audience, a time and a nonce that fit.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from authlib.oauth2 import OAuth2Client, OAuth2Error
from authlib.oidc.core import CodeIDToken
from django.utils.translation import gettext_noop
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.sign_in import client_secret
from dashboard.sign_in.begun import Begun
from dashboard.sign_in.claims import claim_at
from dashboard.sign_in.errors import BadAnswer, ProviderDown
from dashboard.sign_in.provider import Metadata, Provider
from dashboard.sign_in.wire import Wire
from gantrymq.errors import ConfigError

CLOCKS_DIFFER_S = 60
CODE_CHARS_MAX = 4096
ID_TOKEN_CHARS_MAX = 64 << 10
SECRET_BYTES = 32


def begin(wire: Wire, provider: Provider, settings: ApplianceConfig, redirect_uri: str) -> tuple[str, Begun]:
    """Where the browser goes, and what it keeps. Blocking. Raises SignInProblem."""
    metadata = provider.metadata(wire)
    begun = Begun(*(secrets.token_urlsafe(SECRET_BYTES) for _ in range(3)))
    url, _ = _client(wire, metadata, settings, redirect_uri).create_authorization_url(
        metadata.authorization_endpoint, state=begun.state, code_verifier=begun.verifier, nonce=begun.nonce
    )
    return url, begun


def finish(
    wire: Wire, provider: Provider, settings: ApplianceConfig, redirect_uri: str, begun: Begun, told: Mapping[str, str]
) -> dict[str, Any]:
    """What the provider claims about the person. told: the query that the browser brought. Raises SignInProblem."""
    if not hmac.compare_digest(told.get("state", "").encode(), begun.state.encode()):
        raise BadAnswer(
            gettext_noop(
                "This sign-in was not started in this browser, or another one has been started since. Start again."
            )
        )
    metadata = provider.metadata(wire)
    issuer = told.get("iss")
    if issuer != metadata.issuer and (issuer is not None or metadata.tells_issuer):
        raise BadAnswer(gettext_noop("The answer is from another provider. Start again."))
    if told.get("error"):
        raise BadAnswer(gettext_noop("The provider did not sign you in (%(reason)s)."), reason=_word(told["error"]))
    code = told.get("code", "")
    if not 0 < len(code) <= CODE_CHARS_MAX:
        raise BadAnswer(gettext_noop("The provider's answer has no code. Start again."))
    token = _token(wire, metadata, settings, redirect_uri, begun, code)
    claims = _id_token(wire, provider, metadata, settings, begun, token)
    wanted = (settings.oidc_user_claim, settings.oidc_role_claim)
    if metadata.userinfo_endpoint and any(claim_at(claims, name) is None for name in wanted):
        claims = _with_userinfo(wire, metadata, token, claims)
    return claims


def _client(wire: Wire, metadata: Metadata, settings: ApplianceConfig, redirect_uri: str) -> OAuth2Client:
    try:
        secret = client_secret(settings)
    except ConfigError as exc:
        raise ProviderDown("%(reason)s", reason=exc) from exc
    return OAuth2Client(
        wire,
        client_id=settings.oidc_client_id,
        client_secret=secret or None,
        token_endpoint_auth_method="client_secret_post" if secret and metadata.secret_in_form else None,
        scope=settings.oidc_scope,
        redirect_uri=redirect_uri,
        code_challenge_method="S256",
    )


def _token(
    wire: Wire, metadata: Metadata, settings: ApplianceConfig, redirect_uri: str, begun: Begun, code: str
) -> dict[str, Any]:
    client = _client(wire, metadata, settings, redirect_uri)
    try:
        return dict(
            client.fetch_token(
                metadata.token_endpoint, grant_type="authorization_code", code=code, code_verifier=begun.verifier
            )
        )
    except OAuth2Error as exc:
        text = gettext_noop("The provider rejected the code (%(reason)s). Start again.")
        raise BadAnswer(text, reason=_word(exc.error)) from exc
    except ValueError as exc:
        raise BadAnswer(gettext_noop("The provider's answer can't be read.")) from exc


def _id_token(
    wire: Wire, provider: Provider, metadata: Metadata, settings: ApplianceConfig, begun: Begun, token: dict[str, Any]
) -> dict[str, Any]:
    """The claims of the ID token, after all checks of OpenID Connect Core 3.1.3.7."""
    text = token.get("id_token")
    if not isinstance(text, str) or len(text) > ID_TOKEN_CHARS_MAX:
        raise BadAnswer(gettext_noop("The provider's answer has no ID token."))
    keys = provider.keys(wire)
    try:
        try:
            found = _signed(text, keys, metadata)
        except InvalidKeyIdError:  # the provider has changed its keys since
            found = _signed(text, provider.keys(wire, beside=keys), metadata)
        claims = CodeIDToken(
            found.claims, found.header,
            {"iss": {"essential": True, "value": metadata.issuer},
             "aud": {"essential": True, "value": settings.oidc_client_id},
             "sub": {"essential": True}},
            {"nonce": begun.nonce, "client_id": settings.oidc_client_id, "access_token": token.get("access_token")},
        )  # fmt: skip
        claims.validate(leeway=CLOCKS_DIFFER_S)
    except (JoseError, ValueError, TypeError) as exc:
        raise BadAnswer(gettext_noop("The provider's ID token is not valid (%(reason)s)."), reason=exc) from exc
    if not isinstance(claims["sub"], str) or not claims["sub"]:
        raise BadAnswer(gettext_noop("The provider's ID token does not say who it is for."))
    return dict(claims)


def _signed(text: str, keys: KeySet, metadata: Metadata) -> jwt.Token:
    registry = JWSRegistry(algorithms=list(metadata.algorithms), strict_check_header=False)
    return jwt.decode(text, key=keys, registry=registry)


def _with_userinfo(wire: Wire, metadata: Metadata, token: dict[str, Any], claims: dict[str, Any]) -> dict[str, Any]:
    """Many providers tell names and groups only when asked. What is about another person is not taken."""
    access = token.get("access_token")
    if not isinstance(access, str) or not access.isascii() or not access.isprintable():
        return claims
    told = wire.get_json(metadata.userinfo_endpoint, {"Authorization": f"Bearer {access}"})
    if told.get("sub") != claims["sub"]:
        raise BadAnswer(gettext_noop("The provider described another user."))
    return told | claims


def _word(error: object) -> str:
    """A code of OAuth; nothing that is text for a person gets to our page in the provider's name."""
    return (
        "".join(char for char in str(error)[:64] if char.isascii() and (char.isalnum() or char in "_-")) or "no reason"
    )
