"""The certificate that the dashboard shows: the appliance's own, read again when its files change.

Each new TLS connection checks the files, as clients do (`gantrymq.remoting.tls.ClientTls`). If new files can't be used,
the old certificate stays in use and the error is logged; the next change is tried again. Browsers are never asked for a
certificate: `tls_client_auth` is for clients of the brokers, and users of the dashboard have accounts.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

from OpenSSL import SSL
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from zope.interface import implementer

from gantrymq.errors import ConfigError
from gantrymq.remoting.tls import file_stamps, load_identity

logger = logging.getLogger(__name__)

HTTP_1_1 = b"http/1.1"


@implementer(IOpenSSLServerConnectionCreator)
class Certificate:
    """TLS of accepted connections, as Twisted asks for it."""

    def __init__(self, cert: str, key: str) -> None:
        """`key` is empty when it stands in `cert`. Raises ConfigError when the files can't be used."""
        self._cert, self._key = Path(cert), Path(key or cert)
        self._stamps = file_stamps([self._cert, self._key])
        self._context = self._read()

    def serverConnectionForTLS(self, protocol: Any) -> SSL.Connection:
        self._look()
        return SSL.Connection(self._context, None)

    def _look(self) -> None:
        stamps = file_stamps([self._cert, self._key])
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self._context = self._read()
        except ConfigError as exc:
            logger.error("new certificate not used", extra={"event": "tls_certificate_unusable", "why": str(exc)})
        else:
            logger.info("certificate read again", extra={"event": "tls_certificate_read", "path": str(self._cert)})

    def _read(self) -> SSL.Context:
        load_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._cert, self._key, "")  # its errors name the file
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        context.set_options(SSL.OP_NO_RENEGOTIATION | SSL.OP_CIPHER_SERVER_PREFERENCE | SSL.OP_NO_COMPRESSION)
        context.set_passwd_cb(lambda *_: b"")  # or OpenSSL would ask at the terminal
        context.set_alpn_select_callback(_choose_protocol)
        try:
            context.use_certificate_chain_file(str(self._cert))
            context.use_privatekey_file(str(self._key))
            context.check_privatekey()
        except SSL.Error as exc:  # they changed between the two looks
            raise ConfigError(f"{self._cert} with {self._key}: {exc}") from exc
        return context


def _choose_protocol(connection: SSL.Connection, offered: list[bytes]) -> Any:
    """HTTP/1.1, which websockets need; who doesn't offer it speaks it without agreement."""
    return HTTP_1_1 if HTTP_1_1 in offered else SSL.NO_OVERLAPPING_PROTOCOLS
