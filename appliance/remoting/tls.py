"""The certificate of a port: read at the start, and again when its files change.

New connections use the new certificate, open ones keep theirs. If the new files can't be used (half written, or a key
of another certificate), the old certificate stays in use and the error is logged; the next change is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from pathlib import Path

from appliance.settings.tls import DISABLED, ENFORCING, TlsSettings
from gantrymq.errors import ConfigError
from gantrymq.remoting.tls import MINIMUM_VERSION, file_stamps, load_identity, load_trust

logger = logging.getLogger(__name__)

WATCH_SECONDS = 1.0  # between looks at the files (RocketMQ: FileWatchService, 0.5 s)

_VERIFY_MODES = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "require": ssl.CERT_REQUIRED}


class ServerTls:
    """TLS of one process's ports: `context` is for the next connection, `run` updates it when the files change."""

    def __init__(self, settings: TlsSettings, alpn: Sequence[str] = ()) -> None:
        """alpn: protocols that the port offers. Raises ConfigError when the files can't be used."""
        self._settings = settings
        self._alpn = alpn
        self._files = [
            Path(path).expanduser() for path in (settings.tls_cert, settings.tls_key, settings.tls_trust) if path
        ]
        self._stamps = file_stamps(self._files)
        self.is_enforcing = settings.effective_tls_mode == ENFORCING
        self.context = server_context(settings, alpn)

    async def run(self) -> None:
        """Watch the files until cancelled."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await asyncio.to_thread(self.look)

    def look(self) -> None:
        """Read the files again if they changed. Blocking."""
        stamps = file_stamps(self._files)
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self.context = server_context(self._settings, self._alpn)
        except ConfigError as exc:
            logger.error(
                "new certificate can't be used: the old one stays in use",
                extra={"event": "tls_certificate_unusable", "why": str(exc)},
            )
        else:
            logger.info(
                "certificate read again", extra={"event": "tls_certificate_read", "path": self._settings.tls_cert}
            )


def server_tls(settings: TlsSettings, alpn: Sequence[str] = ()) -> ServerTls | None:
    """The TLS of the settings; None when it is disabled."""
    return None if settings.effective_tls_mode == DISABLED else ServerTls(settings, alpn)


def server_context(settings: TlsSettings, alpn: Sequence[str] = ()) -> ssl.SSLContext:
    """A context for accepted connections. Raises ConfigError that names the file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = MINIMUM_VERSION
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.verify_mode = _VERIFY_MODES[settings.tls_client_auth]
    key = Path(settings.tls_key).expanduser() if settings.tls_key else None
    load_identity(context, Path(settings.tls_cert).expanduser(), key, settings.tls_key_password)
    if settings.tls_trust:
        load_trust(context, Path(settings.tls_trust).expanduser())
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context
