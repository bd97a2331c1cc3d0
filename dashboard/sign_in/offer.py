"""The one provider of this process, and what the log-in page says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from appliance.settings.appliance_config import ApplianceConfig

if TYPE_CHECKING:
    from dashboard.sign_in.provider import Provider

_providers: dict[str, Provider] = {}


@dataclass(frozen=True, slots=True)
class Offer:
    """The button. sign_out: where the session at the provider ends, for who has just logged out here; "" is nowhere."""

    name: str
    sign_out: str = ""


def provider_of(config: ApplianceConfig) -> Provider:
    """The same one each time, with what it said before."""
    from dashboard.sign_in.provider import Provider  # here, because it loads Authlib's keys

    return _providers.setdefault(config.oidc_issuer, Provider(config.oidc_issuer))


def provider_name(config: ApplianceConfig) -> str:
    """What the button calls it."""
    return config.oidc_name or urlsplit(config.oidc_issuer).netloc


def offer(request: HttpRequest) -> Offer | None:
    """None without a provider. Asks no one: what is not known yet is left out."""
    config = settings.APPLIANCE
    if not config.oidc_issuer:
        return None
    known = provider_of(config).known
    sign_out = ""
    if known is not None and known.end_session_endpoint and "out" in request.GET:
        there = {
            "client_id": config.oidc_client_id,
            "post_logout_redirect_uri": request.build_absolute_uri(reverse("login")),
        }
        joint = "&" if urlsplit(known.end_session_endpoint).query else "?"
        sign_out = f"{known.end_session_endpoint}{joint}{urlencode(there)}"
    return Offer(provider_name(config), sign_out)
