"""What the browser keeps between the begin of a sign-in and its end: a signed cookie, which holds for ten minutes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_noop

from dashboard.sign_in.errors import BadAnswer

LIFE_S = 600  # to log in at the provider
_SALT = "dashboard.sign_in"


@dataclass(frozen=True, slots=True)
class Begun:
    """state and nonce come back by two ways, the verifier proves who sent the code (PKCE). target: where to go then."""

    state: str
    nonce: str
    verifier: str
    target: str = ""


def keep(request: HttpRequest, response: HttpResponse, begun: Begun) -> None:
    """Lax, as the browser comes back from another site."""
    response.set_cookie(
        settings.SIGN_IN_COOKIE_NAME, signing.dumps(asdict(begun), salt=_SALT), max_age=LIFE_S,
        path=reverse("provider"), secure=request.is_secure(), httponly=True, samesite="Lax",
    )  # fmt: skip


def kept(request: HttpRequest) -> Begun:
    """Raises BadAnswer, when this browser has not begun one, or too long ago."""
    try:
        content = signing.loads(request.COOKIES.get(settings.SIGN_IN_COOKIE_NAME, ""), salt=_SALT, max_age=LIFE_S)
    except signing.BadSignature:
        raise BadAnswer(
            gettext_noop("This sign-in was not started in this browser, or more than ten minutes ago. Start again.")
        ) from None
    return Begun(**content)


def forget(response: HttpResponse) -> None:
    """An answer counts once."""
    response.delete_cookie(settings.SIGN_IN_COOKIE_NAME, path=reverse("provider"), samesite="Lax")
