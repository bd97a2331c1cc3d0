"""`manage.py relay_outbox`: sends what the outbox holds."""

from __future__ import annotations

import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connections

from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.contrib.django.models import can_lock_rows
from gantrymq.contrib.django.outbox.relay import Relay
from gantrymq.contrib.django.settings import current
from gantrymq.errors import GantryError

LOCKING = "several relays may run: a message is locked while one of them sends it"
LEASING = (
    "this database ({vendor}) can't lock rows, so a relay reserves messages for {seconds:g} s: when a relay stands "
    "still for longer than that, another one sends its messages again, with the same message ids"
)


class Command(BaseCommand):
    """See `help`."""

    help = (
        "Send the messages of the outbox, and remove old ones, until SIGTERM or SIGINT. Messages with the same topic "
        "and sharding key go in their order. Several processes may run this at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The database, and `--once`."""
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, choices=list(connections), help="default: default")
        parser.add_argument("--once", action="store_true", help="end when nothing is due any more")

    def handle(self, *arguments: Any, database: str, once: bool, **options: Any) -> None:
        """Relay until a signal comes, or with `--once` until nothing is due."""
        project = current()
        told = LOCKING
        if not can_lock_rows(database):
            told = LEASING.format(vendor=connections[database].vendor, seconds=project.outbox.lease_s)
        self.stdout.write(f"relaying the outbox of {database}; {told}")
        self.stdout.flush()
        stopped = threading.Event()
        try:
            with Relay(project, database) as relay, StopSignals(stopped.set):
                sent = relay.run_once(stopped) if once else relay.run(stopped)
        except GantryError as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"{sent} sent")
