"""TLS settings of broker and name server, under the names of RocketMQ's TlsSystemConfig and tls.properties.

In RocketMQ they are system properties of the Java process, or in the file that tls.config.file names; here
broker.properties and namesrv.properties may contain them as well. TLS is off without a certificate; with one, a port
accepts both TLS and plain connections unless tls.server.mode says otherwise. There is no built-in test certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gantrymq.errors import ConfigError
from gantrymq.remoting.tls import TlsConfig
from store.base.config import setting

DISABLED, PERMISSIVE, ENFORCING = "disabled", "permissive", "enforcing"
CLIENT_AUTH = ("none", "optional", "require")
NOT_FROM_TLS_FILE = ("tls.server.mode", "tls.enable", "tls.config.file")  # RocketMQ never reads these from that file


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """TLS of a port, and of this process's connections to name servers."""

    tls_config_file: str = setting("", "tls.config.file", "properties file with tls.* settings, which take precedence")
    tls_mode: str = setting(
        "", "tls.server.mode", "disabled, permissive or enforcing; empty: permissive with a certificate"
    )
    tls_cert: str = setting("", "tls.server.certPath", "certificate chain, PEM")
    tls_key: str = setting("", "tls.server.keyPath", "private key, PEM; empty: it is in certPath")
    tls_key_password: str = setting("", "tls.server.keyPassword", "password of the private key")
    tls_client_auth: str = setting(
        "none", "tls.server.need.client.auth", "request a certificate of clients: none, optional, require"
    )
    tls_auth_client: bool = setting(
        False, "tls.server.authClient", "verify clients' certificates; requested ones always are"
    )
    tls_trust: str = setting("", "tls.server.trustCertPath", "authorities of clients' certificates, PEM")
    tls_outgoing: bool | None = setting(
        None, "useTLS", "use TLS to name servers; empty: if tls.server.mode is enforcing"
    )
    tls_client_cert: str = setting("", "tls.client.certPath", "certificate shown to name servers, PEM")
    tls_client_key: str = setting("", "tls.client.keyPath", "its private key, PEM")
    tls_client_key_password: str = setting("", "tls.client.keyPassword", "password of that key")
    tls_client_auth_server: bool = setting(
        True, "tls.client.authServer", "verify the name server's certificate (RocketMQ: false)"
    )
    tls_client_check_host: bool = setting(
        True, "tls.client.checkHost", "the certificate must be for the server's address (not RocketMQ's)"
    )
    tls_client_trust: str = setting(
        "", "tls.client.trustCertPath", "authorities of name servers, PEM; empty: the system's"
    )

    def __post_init__(self) -> None:
        if self.tls_mode not in ("", DISABLED, PERMISSIVE, ENFORCING):
            raise ConfigError(f"tls.server.mode={self.tls_mode}: use disabled, permissive or enforcing")
        if self.tls_client_auth not in CLIENT_AUTH:
            raise ConfigError(f"tls.server.need.client.auth={self.tls_client_auth}: use none, optional or require")
        if self.tls_mode in (PERMISSIVE, ENFORCING) and not self.tls_cert:
            raise ConfigError(f"tls.server.mode={self.tls_mode}: give tls.server.certPath and tls.server.keyPath")
        if self.tls_client_auth != "none" and not self.tls_trust:
            raise ConfigError(
                f"tls.server.need.client.auth={self.tls_client_auth}: give the authorities of clients' certificates in "
                "tls.server.trustCertPath"
            )
        if self.tls_auth_client and self.tls_client_auth == "none":
            raise ConfigError(
                "tls.server.authClient=true has no effect while no client is asked for a certificate: set "
                "tls.server.need.client.auth to require or optional"
            )

    @property
    def effective_tls_mode(self) -> str:
        """disabled, permissive or enforcing."""
        return self.tls_mode or (PERMISSIVE if self.tls_cert else DISABLED)

    @property
    def outgoing_tls(self) -> TlsConfig | None:
        """TLS of connections to name servers; None: plain connections."""
        is_wanted = self.tls_outgoing if self.tls_outgoing is not None else self.effective_tls_mode == ENFORCING
        if not is_wanted:
            return None
        return TlsConfig(
            trust_cert=_path(self.tls_client_trust),
            cert=_path(self.tls_client_cert),
            key=_path(self.tls_client_key),
            key_password=self.tls_client_key_password,
            check_host=self.tls_client_check_host,
            verify=self.tls_client_auth_server,
        )


def _path(text: str) -> Path | None:
    return Path(text).expanduser() if text else None
