"""Make certificates for one's own machines: `gantry tls create FOLDER` (authority, server, client; PEM files)."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

from appliance.config import outward_address


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = verbs.add_parser("create", help="make ca, server and client certificates in FOLDER")
    create.add_argument("folder", type=Path, metavar="FOLDER", help="where the files go; none of them may exist")
    create.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="name or address that clients use for the server, as often as needed (always there: localhost, "
        "loopback, this machine's name and address)",
    )


def run(arguments: argparse.Namespace) -> int:
    from appliance import certificates  # says what is missing when it can't work

    usual = ("localhost", "127.0.0.1", "::1", socket.gethostname(), outward_address())
    for path in certificates.create(arguments.folder, list(dict.fromkeys([*usual, *arguments.host]))):
        print(path)
    folder = arguments.folder.absolute()
    print(
        f"\nserve with them:  gantry up --tls-cert {folder / 'server.pem'} --tls-key {folder / 'server.key'} "
        f"--tls-trust {folder / 'ca.pem'}\nclients trust:    {folder / 'ca.pem'}"
    )
    return 0
