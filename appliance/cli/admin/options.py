"""Options of `gantry admin`: those that every command takes, before the noun, before the verb or after it (which
cluster, as whom, how to print), and values that several commands read."""

from __future__ import annotations

import argparse
import math
import os
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from appliance.settings.variables import DASHBOARD_VARIABLE, NAMESRV_VARIABLE
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.connection.name_servers import parse_name_servers
from gantrymq.errors import ConfigError, ConnectError, ResponseError
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

DEFAULT_NAMESRV = "127.0.0.1:9876"
NAMESRV_VARIABLES = (NAMESRV_VARIABLE, "NAMESRV_ADDR")
DEFAULT_TIMEOUT_S = 5.0
DEFAULT_DASHBOARD = "http://127.0.0.1:8080"
REST_TIMEOUT_S = 60.0  # a test of a channel waits for the other side's answer
HUNG_UP = re.compile(r"closed|reset|pipe", re.IGNORECASE)
ADDRESS = re.compile(r"\S+:\d{1,5}")
AGO = re.compile(r"(\d+)\s*(s|m|min|h|d)")
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def add_common(parser: argparse.ArgumentParser, *, shown: bool = True) -> None:
    """The options, without defaults: what was given further left must not be overwritten (see with_defaults)."""
    group = parser.add_argument_group("common options, anywhere in the line") if shown else parser

    def add(*names: str, help: str, **settings: Any) -> None:
        group.add_argument(*names, default=argparse.SUPPRESS, help=help if shown else argparse.SUPPRESS, **settings)

    add("-n", "--namesrv", type=name_servers, metavar="HOST:PORT",
        help=f"name servers, several with ';' (default: {_default_namesrv()[0]})")  # fmt: skip
    add("--json", action="store_true", help="print JSON")
    add(
        "--timeout",
        type=_seconds,
        metavar="S",
        help=f"seconds for each request (default: {DEFAULT_TIMEOUT_S:g}; {REST_TIMEOUT_S:g} for the dashboard)",
    )
    add(
        "--dashboard",
        type=dashboard,
        metavar="URL",
        help="address of the dashboard, for verbs that call it "
        f"(default: {os.environ.get(DASHBOARD_VARIABLE) or DEFAULT_DASHBOARD})",
    )
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with an API token for the dashboard (default: GANTRY_TOKEN)",
    )
    add("--tls", action="store_true", help="use TLS; the options below imply it")
    add("--tls-trust", type=Path, metavar="FILE", help="certificates to trust (PEM) instead of the system's")
    add("--tls-cert", type=Path, metavar="FILE", help="certificate to show (PEM)")
    add("--tls-key", type=Path, metavar="FILE", help="its private key (PEM; default: read from --tls-cert)")


def with_defaults(arguments: argparse.Namespace) -> argparse.Namespace:
    """Fill what was not given, and note what was. Raises ConfigError for a variable that holds no address."""
    arguments.given = {name for name in ("namesrv", "dashboard", "timeout") if hasattr(arguments, name)}
    if not hasattr(arguments, "namesrv"):
        text, variable = _default_namesrv()
        try:
            arguments.namesrv = name_servers(text)
        except argparse.ArgumentTypeError as exc:
            raise ConfigError(f"{variable}: {exc}") from exc
    if not hasattr(arguments, "dashboard"):
        try:
            arguments.dashboard = dashboard(os.environ.get(DASHBOARD_VARIABLE) or DEFAULT_DASHBOARD)
        except argparse.ArgumentTypeError as exc:
            raise ConfigError(f"{DASHBOARD_VARIABLE}: {exc}") from exc
    is_rest = arguments.command.opens is not open_admin
    defaults = {"json": False, "timeout": REST_TIMEOUT_S if is_rest else DEFAULT_TIMEOUT_S, "tls": False}
    for name, default in {
        **defaults, "tls_trust": None, "tls_cert": None, "tls_key": None, "token_file": None
    }.items():  # fmt: skip
        if not hasattr(arguments, name):
            setattr(arguments, name, default)
    return arguments


def _default_namesrv() -> tuple[str, str]:
    """The address and the variable it comes from."""
    for variable in NAMESRV_VARIABLES:
        if os.environ.get(variable):
            return os.environ[variable], variable
    return DEFAULT_NAMESRV, ""


def name_servers(text: str) -> str:
    """Addresses with ';' between them. ArgumentTypeError when one is none."""
    try:
        wrong = [part for part in parse_name_servers(text) if not ADDRESS.fullmatch(part)]
    except ConfigError:
        wrong = [text]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not HOST:PORT, such as {DEFAULT_NAMESRV}")
    return text


def dashboard(text: str) -> str:
    """An address of http or https. ArgumentTypeError when it is none."""
    try:
        url = urlsplit(text)
        is_good = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        is_good = False
    if not is_good or url.path.strip("/") or url.query or url.username or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is not an address of a dashboard, such as {DEFAULT_DASHBOARD}")
    return text.rstrip("/")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, such as 2.5")
    return seconds


def open_admin(arguments: argparse.Namespace) -> AdminClient:
    """An AdminClient as the options say. Raises ConfigError."""
    if arguments.tls_key and not arguments.tls_cert:
        raise ConfigError("--tls-key is the key of a certificate: give --tls-cert FILE, too")
    tls = None
    if speaks_tls(arguments):
        tls = TlsConfig(trust_cert=arguments.tls_trust, cert=arguments.tls_cert, key=arguments.tls_key)
    credentials = Credentials.from_environment()
    try:
        return AdminClient(arguments.namesrv, timeout_s=arguments.timeout, credentials=credentials, tls=tls)
    except ConfigError as exc:
        if arguments.tls_cert and not arguments.tls_key:
            raise ConfigError(f"{exc}; if the key is in a separate file, give --tls-key FILE") from exc
        raise


def tls_hint(failure: Exception, arguments: argparse.Namespace) -> str:
    """What to try when a connection failed as it does when TLS options are missing; nothing for other failures."""
    text = str(failure)
    if isinstance(failure, ResponseError) and "tls.server.mode" in text:
        return "; give --tls, or --tls-trust FILE for your own certificates"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "; --tls-trust FILE names the certificates to trust"
    if isinstance(failure, ConnectError) and HUNG_UP.search(failure.reason or "closed") and speaks_tls(arguments):
        return "; does the server speak TLS?" + (
            "" if arguments.tls_cert else " Does it want --tls-cert and --tls-key?"
        )
    return ""


def speaks_tls(arguments: argparse.Namespace) -> bool:
    return bool(arguments.tls or arguments.tls_trust or arguments.tls_cert)


def parse_time(text: str) -> int:
    """Milliseconds since the epoch: "2026-11-21 10:00", "10:30" (today), "2h" (so long ago), "now", or milliseconds.

    -1 for "end" ("last", "latest"), 0 for "begin" ("first", "earliest"). ArgumentTypeError tells the forms.
    """
    word = text.strip().lower()
    if word in ("end", "last", "latest", "max"):
        return -1
    if word in ("begin", "first", "earliest", "min"):
        return 0
    now = time.time()
    if word == "now":
        return int(now * 1000)
    if (ago := AGO.fullmatch(word.removesuffix("ago").strip().removeprefix("-"))) is not None:
        return int((now - int(ago[1]) * SECONDS[ago[2]]) * 1000)
    if word.isdecimal() and len(word) >= 11:
        return int(word)
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", word):
            return int(datetime.fromisoformat(f"{datetime.now():%Y-%m-%d} {word.zfill(5)}").timestamp() * 1000)
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time: use 2026-11-21T10:00, 10:30, 2h (2 hours ago), begin, end, or milliseconds"
        ) from None


def parse_pair(text: str, *, example: str = "colour=blue") -> tuple[str, str]:
    """NAME=VALUE."""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as {example}")
    return name.strip(), value.strip()


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1, such as 4")
    return int(text)


def not_negative(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0, such as 0")
    return int(text)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--cluster", metavar="NAME", help="only this cluster")
