"""Certificates for tests, made once a session: an authority with a server and a client, and a stranger's authority."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

from appliance.certificates import create
from gantrymq.remoting.tls import TlsConfig

HOSTS = ("localhost", "127.0.0.1", "::1")


def authority(name: str = "ours") -> Path:
    """The folder of an authority of that name: {ca,server,client}.{pem,key}."""
    return _made(name)


@functools.cache
def _made(name: str) -> Path:
    folder = _home() / name
    create(folder, HOSTS)
    return folder


@functools.cache
def _home() -> Path:
    home = tempfile.TemporaryDirectory(prefix="gantry-test-certificates-")
    _kept.append(home)
    return Path(home.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def server_fields(**more: Any) -> dict[str, Any]:
    """Fields of BrokerConfig or NamesrvConfig for a port that shows our certificate."""
    folder = authority()
    return {"tls_cert": str(folder / "server.pem"), "tls_key": str(folder / "server.key"), **more}


def trusting(*, with_certificate: bool = False, name: str = "ours") -> TlsConfig:
    """A client that trusts the authority and, if wanted, shows a certificate of it."""
    folder = authority(name)
    if not with_certificate:
        return TlsConfig(trust_cert=folder / "ca.pem")
    return TlsConfig(trust_cert=folder / "ca.pem", cert=folder / "client.pem", key=folder / "client.key")
