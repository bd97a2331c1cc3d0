"""What brokers' ports ask of a client: TLS, with the certificate that they show, in words that say what it means."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext
from OpenSSL import crypto

from dashboard.language.sentences import joined
from dashboard.status.check import Check, Level
from gantrymq.timeouts import timeout

HANDSHAKE_TIMEOUT_S = 2.0
EXPIRING = timedelta(days=30)


async def first_end(addresses: Iterable[str]) -> datetime | None:
    """When the first of the certificates shown at the addresses ends; None when none could be read."""
    ends = await asyncio.gather(*map(_end, addresses))
    return min((end for end in ends if end is not None), default=None)


def tls_check(modes: Sequence[str], ends_at: datetime | None, now: datetime) -> Check:
    """modes: of the brokers, as they tell them; none: they tell nothing."""
    title = gettext("TLS")
    if not modes:
        return Check(Level.WARN, title, gettext("unknown: these brokers do not report it"))
    if all(mode == "disabled" for mode in modes):
        return Check(Level.GOOD, title, gettext("off: clients connect without TLS"))
    action = gettext("Clients connect with TLS by tls=True in Python, -Dtls.enable=true in Java.")
    if len(set(modes)) > 1:
        mode = gettext("different from broker to broker: a client has to fit each of them")
    elif modes[0] == "enforcing":
        mode = gettext("required: clients without TLS are rejected")
    else:
        mode = gettext("optional: clients connect with or without TLS")
    level, certificate, renew = _certificate(ends_at, now)
    if len(set(modes)) > 1:
        level = max(level, Level.WARN)
    return Check(level, title, joined([mode, certificate], "; "), renew or action)


def _certificate(ends_at: datetime | None, now: datetime) -> tuple[Level, str, str]:
    """How good it is, in words, and what to do."""
    if ends_at is None:
        return Level.WARN, gettext("the certificate could not be read from here"), ""
    day, renew = {"day": f"{ends_at:%Y-%m-%d}"}, gettext(
        "Put a new certificate in place of the file that tls_cert names (gantry tls create makes one): brokers read it "
        "again by themselves."
    )  # fmt: skip
    if ends_at <= now:
        return (
            Level.BAD,
            gettext("the certificate expired on %(day)s, so clients that check it do not connect") % day,
            renew,
        )
    if ends_at - now <= EXPIRING:
        return Level.WARN, gettext("the certificate expires soon, on %(day)s") % day, renew
    return Level.GOOD, gettext("the certificate is valid until %(day)s") % day, ""


async def _end(address: str) -> datetime | None:
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # an expired one is to be seen, too
    try:
        async with timeout(HANDSHAKE_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
    except (OSError, ValueError, TimeoutError):
        return None
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()  # a farewell would wait for the other side's, for half a minute
    ends = crypto.load_certificate(crypto.FILETYPE_ASN1, shown).get_notAfter() if shown else None
    return None if ends is None else datetime.strptime(ends.decode(), "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
