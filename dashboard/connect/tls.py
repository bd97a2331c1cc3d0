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


async def ends_of(addresses: Iterable[str]) -> list[datetime | None]:
    """When each of the certificates shown at the addresses ends; None: it could not be read."""
    return list(await asyncio.gather(*map(_end, addresses)))


def tls_check(modes: Sequence[str], ends: Sequence[datetime | None], now: datetime) -> Check:
    """modes: of the brokers, as they tell them, "": one does not. ends: of the certificates of those with TLS."""
    title, told = gettext("TLS"), sorted({mode for mode in modes if mode})
    if not told:
        return Check(Level.WARN, title, gettext("unknown: these brokers do not report it"))
    level, action = Level.GOOD, gettext("Clients connect with TLS by tls=True in Python, -Dtls.enable=true in Java.")
    if len(told) > 1:
        level = Level.WARN
        evidence = [gettext("different from broker to broker: a client has to fit each of them")]
    elif told == ["enforcing"]:
        evidence = [gettext("required: clients without TLS are rejected")]
    elif told == ["disabled"]:
        evidence, action = [gettext("off: clients connect without TLS")], ""
    else:
        evidence = [gettext("optional: clients connect with or without TLS")]
    if "" in modes:
        level = Level.WARN
        evidence.append(gettext("some brokers do not report it"))
    if told != ["disabled"]:
        of_certificate, certificate, renew = _certificate(ends, now)
        level, action = max(level, of_certificate), renew or action
        evidence.append(certificate)
    return Check(level, title, joined(evidence, "; "), action)


def _certificate(ends: Sequence[datetime | None], now: datetime) -> tuple[Level, str, str]:
    """How good the first that ends is, in words, and what to do."""
    known = [one for one in ends if one is not None]
    if not known:
        return Level.WARN, gettext("the certificate could not be read from here"), ""
    level, text, renew = _first_end(min(known), now)
    if len(known) == len(ends):
        return level, text, renew
    numbers = {"unread": len(ends) - len(known), "all": len(ends)}
    unread = gettext("%(unread)s of %(all)s certificates could not be read from here") % numbers
    return max(level, Level.WARN), joined([text, unread], "; "), renew


def _first_end(ends_at: datetime, now: datetime) -> tuple[Level, str, str]:
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
