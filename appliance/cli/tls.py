"""Create certificates for TLS between your own machines: an authority, a server's and a client's, as PEM files.

  gantry tls create certificates --host broker.example.org
  gantry up --tls-cert certificates/server.pem --tls-key certificates/server.key --tls-trust certificates/ca.pem
  gantry admin --tls-trust certificates/ca.pem cluster

Keys are readable by their owner only, and no file is overwritten. The authority is valid for 10 years, the others for
825 days. Clients that need a certificate use client.pem with client.key.
"""

from __future__ import annotations

import argparse
import ipaddress
import re
import socket
import sys
from pathlib import Path

from appliance.settings.roles import outward_address

HOST_NAME = re.compile(
    r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?"
)
HOST_CHARS_MAX = 253


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    summary = "create ca, server and client certificates in FOLDER"
    create = verbs.add_parser("create", help=summary, description=f"C{summary[1:]}.")
    create.add_argument("folder", type=Path, metavar="FOLDER", help="folder for the files; none of them may exist")
    create.add_argument(
        "--host",
        action="append",
        default=[],
        type=host_name,
        metavar="NAME",
        help="name or address that clients use for the server; may be repeated (always included: localhost, "
        "loopback, this machine's name and address)",
    )


def run(arguments: argparse.Namespace) -> int:
    from appliance import certificates  # raises ConfigError when cryptography is missing

    usual = ("localhost", "127.0.0.1", "::1", socket.gethostname(), outward_address())
    try:
        paths = certificates.create(arguments.folder, list(dict.fromkeys([*usual, *arguments.host])))
    except OSError as exc:
        print(f"gantry tls: can't write to {arguments.folder}: {exc.strerror}", file=sys.stderr)
        return 1
    print(*paths, sep="\n")
    folder = arguments.folder.absolute()
    print(
        f"\nserve with them:  gantry up --tls-cert {folder / 'server.pem'} --tls-key {folder / 'server.key'} "
        f"--tls-trust {folder / 'ca.pem'}\nclients trust:    {folder / 'ca.pem'}"
    )
    return 0


def host_name(text: str) -> str:
    """A name or an IP address. Raises ArgumentTypeError for anything that a certificate can't contain."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    if not HOST_NAME.fullmatch(text) or len(text) > HOST_CHARS_MAX or text.replace(".", "").isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name or address, such as broker.example.org or 192.168.7.5"
        )
    return text
