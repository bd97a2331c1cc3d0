"""The security headers of every response. Scripts and styles come from the dashboard's origin only, never inline.

A view whose page needs more sets `response.csp_extra = {"style-src": "'unsafe-inline'"}`; the addition is visible
there.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from dashboard.http.middleware import AsyncMiddleware

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


def content_security_policy(extra: dict[str, str] | None = None) -> str:
    """The policy as a header value, with what one page adds."""
    extra = extra or {}
    parts = {name: f"{value} {extra[name]}" if name in extra else value for name, value in POLICY.items()}
    parts |= {name: value for name, value in extra.items() if name not in POLICY}
    return "; ".join(f"{name} {value}" for name, value in parts.items())


_PLAIN_POLICY = content_security_policy()


class SecurityHeaders(AsyncMiddleware):
    """Adds the headers to every response."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = await self.get_response(request)
        extra = getattr(response, "csp_extra", None)
        headers = response.headers
        headers["Content-Security-Policy"] = content_security_policy(extra) if extra else _PLAIN_POLICY
        headers["X-Content-Type-Options"] = "nosniff"
        headers["X-Frame-Options"] = "DENY"
        headers["Referrer-Policy"] = "same-origin"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
        if request.is_secure():
            _secure(response)
        if not headers.get("Cache-Control"):
            headers["Cache-Control"] = "no-store"
        return response


def _secure(response: HttpResponseBase) -> None:
    """What came over TLS must not leave without: cookies say so, and all of the host's ports if the setting wants."""
    for morsel in response.cookies.values():
        morsel["secure"] = True
    if settings.APPLIANCE.http_hsts_s:
        response.headers["Strict-Transport-Security"] = f"max-age={settings.APPLIANCE.http_hsts_s}"
