"""Which host a request asked for, and the same place over TLS."""

from __future__ import annotations

import re

from django.conf import settings
from django.http.request import split_domain_port, validate_host

# No cookie opens them without TLS, so nothing is lost on the way.
ONLY_FOR_PROGRAMS = (b"/api/", b"/healthz", b"/readyz")
_TARGET = re.compile(rb"/[!-~]*")


def is_known_host(host: str) -> bool:
    """Whether a Host header is one of the dashboard's names; with DNS rebinding it may be another site's."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def place_over_tls(host: bytes, target: bytes, usual: str) -> str:
    """The same page with https. An unknown host is replaced by `usual`, so there is no redirect to other sites."""
    text = host.decode("latin-1")
    found = _TARGET.fullmatch(target)
    path = "/" + target.decode("ascii").lstrip("/") if found is not None else "/"
    return f"https://{text if is_known_host(text) else usual}{path}"
