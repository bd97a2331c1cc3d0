"""A small certificate authority for the user's own machines, and the certificates that it signs.

    FOLDER/ca.pem  ca.key            the authority: clients trust ca.pem; ca.key must stay secret
    FOLDER/server.pem  server.key    the certificate of brokers and name servers
    FOLDER/client.pem  client.key    the certificate of clients that need one

Keys are P-256 in PKCS#8, unencrypted, readable by their owner only. Needs the package `cryptography`.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from gantrymq.errors import ConfigError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as exc:  # it comes with the appliance, not with the bare SDK
    raise ConfigError("creating certificates needs the package cryptography: pip install cryptography") from exc

AUTHORITY_DAYS = 3650
LEAF_DAYS = 825  # the longest that all platforms accept for a private authority's certificate
CLOCK_SKEW = datetime.timedelta(minutes=5)


def create(folder: Path, hosts: Sequence[str]) -> list[Path]:
    """Create an authority with a server's and a client's certificate in `folder`; returns the files.

    hosts: names and addresses that clients use for the server. Raises ConfigError when a file is there already.
    """
    paths = [folder / f"{name}.{kind}" for name in ("ca", "server", "client") for kind in ("pem", "key")]
    for path in paths:
        if path.exists():
            raise ConfigError(f"{path} exists already: name another folder, or move the file away")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _authority(ca_key)
    _write(folder, "ca", ca, ca_key)
    for name in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        _write(folder, name, _leaf(f"gantry {name}", key, ca, ca_key, hosts if name == "server" else ()), key)
    return paths


def ends_at(path: Path) -> datetime.datetime:
    """When the first certificate of a PEM file ends. Raises OSError, ValueError."""
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("gantry local authority")
    builder = _builder(name, name, key.public_key(), AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(is_authority=True), critical=True)
    return builder.sign(key, hashes.SHA256())


def _leaf(
    title: str,
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    hosts: Sequence[str],
) -> x509.Certificate:
    builder = _builder(_name(title), ca.subject, key.public_key(), LEAF_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(is_authority=False), critical=True)
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]  # brokers are clients of name servers
    if hosts:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return builder.add_extension(authority_id, critical=False).sign(ca_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _name(title: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    descriptor = os.open(folder / f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
