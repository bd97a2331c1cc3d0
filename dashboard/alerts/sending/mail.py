"""One mail with a notice, by SMTP: plain, STARTTLS or TLS, with or without an account."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any

from appliance.settings.checks import Network
from dashboard.alerts.sending.notices import html_of, text_of
from dashboard.language.sentences import gettext, joined
from dashboard.outward.targets import resolve

STEP_TIMEOUT_S = 10.0
NETWORKS = "alarm_networks"  # the setting that allows receivers at private addresses
PLAIN, STARTTLS, TLS = "none", "starttls", "tls"


class Mail:
    """`send` blocks; `close` from another thread ends it."""

    def __init__(self, settings: Mapping[str, Any], notice: str, delivery: str, allowed: Sequence[Network]) -> None:
        self._settings = settings
        self._notice = notice
        self._delivery = delivery
        self._allowed = allowed
        self._socket: socket.socket | None = None

    def send(self) -> str:
        """What the server said. Raises TargetRefused, NotResolved, OSError, SMTPException."""
        host, port = self._settings["host"], int(self._settings["port"])
        address = resolve(host, port, self._allowed, NETWORKS)
        self._socket = socket.create_connection((address, port), timeout=STEP_TIMEOUT_S)
        security = self._settings["security"]
        if security == TLS:
            self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=host)
        with _Connected(host, port, self._socket) as server:
            if security == STARTTLS:
                server.starttls(context=ssl.create_default_context())
                self._socket = server.sock
            if self._settings.get("username"):
                server.login(self._settings["username"], self._settings.get("password") or "")
            refused = server.send_message(message_of(self._settings, self._notice, self._delivery))
        if refused:
            return gettext("accepted, but not for %(addresses)s") % {"addresses": joined(sorted(refused))}
        return gettext("accepted by %(host)s") % {"host": host}

    def close(self) -> None:
        """End a send that takes too long."""
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended by itself


class _Connected(smtplib.SMTP):
    """An SMTP client over a connection to an address that was looked at."""

    def __init__(self, host: str, port: int, connection: socket.socket) -> None:
        self._connection = connection
        super().__init__(host, port, timeout=STEP_TIMEOUT_S)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self._connection


def message_of(settings: Mapping[str, Any], notice: str, delivery: str) -> EmailMessage:
    """The mail. Line breaks in a title never get into its header."""
    text = text_of(notice)
    message = EmailMessage()
    message["Subject"] = "GantryMQ: " + " ".join(text.splitlines()[0].split())
    message["From"] = settings["sender"]
    message["To"] = settings["recipients"]
    message["Date"] = formatdate()
    message["Message-ID"] = f"<{delivery}@gantrymq>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    html = html_of(notice)
    if html is not None:
        message.add_alternative(html, subtype="html")
    return message
