"""Make certificates for TLS between one's own machines: an authority, a server's and a client's, as PEM files.

  gantry tls create certificates --host broker.example.org
  gantry up --tls-cert certificates/server.pem --tls-key certificates/server.key --tls-trust certificates/ca.pem
  gantry admin --tls-trust certificates/ca.pem cluster

Keys are readable by their owner only, and nothing is overwritten. The authority lasts 10 years, the others 825 days.
Clients that are asked for a certificate show client.pem with client.key.
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
    summary = "make ca, server and client certificates in FOLDER"
    create = verbs.add_parser("create", help=summary, description=f"M{summary[1:]}.")
    create.add_argument("folder", type=Path, metavar="FOLDER", help="where the files go; none of them may exist")
    create.add_argument(
        "--host",
        action="append",
        default=[],
        type=host_name,
        metavar="NAME",
        help="name or address that clients use for the server, as often as needed (always there: localhost, "
        "loopback, this machine's name and address)",
    )


def run(arguments: argparse.Namespace) -> int:
    from appliance import certificates  # says what is missing when it can't work

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
    """A name or an IP address. ArgumentTypeError for what no certificate can bear."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        pass
    if not HOST_NAME.fullmatch(text) or len(text) > HOST_CHARS_MAX or text.replace(".", "").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no name or address, such as broker.example.org or 192.168.7.5")
    return text
