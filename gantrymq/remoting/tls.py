"""TLS for clients: which server to trust, which certificate to show. Contexts follow their files.

Everything that takes `tls=` takes an ssl.SSLContext, used as it is, or a TlsConfig: names of PEM files. With the latter
every new connection looks whether a file changed and reads it again; a broken new file is logged, and what was read
before stays in use.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gantrymq.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path  # loaded where it is used: it takes longer to import than most of the SDK

logger: logging.Logger = logging.getLogger(__name__)

MINIMUM_VERSION = ssl.TLSVersion.TLSv1_2

FileStamp = tuple[str, int, int, int]  # path, mtime ns, bytes, inode; a file that is away has -1, -1, -1


@dataclass(frozen=True, kw_only=True)
class TlsConfig:
    """How a client speaks TLS; all files are PEM.

    trust_cert: certificates of the authorities (or of the server itself) that are trusted; None: the system's.
    cert, key: what the client shows to servers that ask for a certificate; key None: it stands in `cert`.
    check_host: whether the server's certificate must bear the name or address that was asked for.
    verify: False accepts any certificate: no protection against an impostor.
    """

    trust_cert: Path | str | None = None
    cert: Path | str | None = None
    key: Path | str | None = None
    key_password: str = field(default="", repr=False)
    check_host: bool = True
    verify: bool = True

    def files(self) -> list[Path]:
        """The files that a context is made of."""
        from pathlib import Path

        return [Path(path) for path in (self.trust_cert, self.cert, self.key) if path]

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises ConfigError that names the file."""
        from pathlib import Path

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = MINIMUM_VERSION
        context.check_hostname = self.check_host and self.verify
        if not self.verify:
            context.verify_mode = ssl.CERT_NONE
        elif self.trust_cert:
            load_trust(context, Path(self.trust_cert))
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if self.cert:
            load_identity(context, Path(self.cert), Path(self.key) if self.key else None, self.key_password)
        return context


class ClientTls:
    """The context for the next connection of one client. Raises ConfigError when the files can't be used at first."""

    def __init__(self, tls: ssl.SSLContext | TlsConfig) -> None:
        self._config = tls if isinstance(tls, TlsConfig) else None
        self._stamps = file_stamps(tls.files()) if isinstance(tls, TlsConfig) else ()
        self._context = tls.context() if isinstance(tls, TlsConfig) else tls

    def context(self) -> ssl.SSLContext:
        """The context as the files say now; the last good one when they can't be used."""
        if self._config is None:
            return self._context
        stamps = file_stamps(self._config.files())
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._context = self._config.context()
            except ConfigError as exc:
                logger.error("new TLS files not used: %s", exc, extra={"event": "tls_files_unusable", "why": str(exc)})
        return self._context


def load_identity(context: ssl.SSLContext, cert: Path, key: Path | None, key_password: str) -> None:
    """Have the context show a certificate. Raises ConfigError that names the files, never the password."""
    for path in (cert, key):
        if path is not None:
            _require_readable(path)
    try:
        context.load_cert_chain(cert, key, password=key_password)  # a text, or OpenSSL would ask at the terminal
    except (ssl.SSLError, OSError, ValueError) as exc:
        raise ConfigError(
            f"{cert}{f' with {key}' if key else ''}: no certificate with its private key in PEM form, or the key's "
            f"password is another: {exc}"
        ) from exc


def load_trust(context: ssl.SSLContext, path: Path) -> None:
    """Have the context trust what these certificates sign. Raises ConfigError that names the file."""
    _require_readable(path)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the named certificate is enough, its root may be elsewhere
    try:
        context.load_verify_locations(path)
    except (ssl.SSLError, OSError, ValueError) as exc:
        raise ConfigError(f"{path}: no certificates in PEM form: {exc}") from exc


def _require_readable(path: Path) -> None:
    """OpenSSL's errors don't say which file is meant."""
    try:
        with path.open("rb"):
            pass
    except OSError as exc:
        raise ConfigError(f"can't read {path}: {exc.strerror}") from exc


def file_stamps(paths: Iterable[Path]) -> tuple[FileStamp, ...]:
    """What tells that a file is another than before."""
    return tuple(_stamp(path) for path in paths)


def _stamp(path: Path) -> FileStamp:
    try:
        found = path.stat()
    except OSError:
        return str(path), -1, -1, -1
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino
