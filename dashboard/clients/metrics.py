"""The figures of the list of clients."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext_noop

from dashboard.clients.values import ClientListing, ConnectedClient
from dashboard.cluster import units
from dashboard.language.sentences import gettext
from dashboard.status.metric import Metrics, shape_of

NOT_TOLD = gettext_noop("only GantryMQ's brokers report it")


def client_metrics(rows: Sequence[ConnectedClient], listing: ClientListing) -> Metrics:
    """By the client's name."""
    metrics = Metrics(now=listing.at)
    for one in rows:
        tells_less = any(name in listing.telling_less for name in one.brokers)
        why = gettext(NOT_TOLD) if tells_less else gettext("known at the next sample")
        since = None if one.since is None else listing.at - one.since
        metrics.put(f"client.{one.name}.rate", units.rate(one.rate), listing.at, why)
        metrics.put(f"client.{one.name}.since", units.duration(since), listing.at, why)
    shown = (
        f"{one.name} {one.language} {one.version} {one.is_twice} {one.producer_groups} {one.consumer_groups} "
        f"{[(each.broker, each.address, each.account) for each in one.connections]}"
        for one in rows
    )
    failures = (f"{failure.what} {failure.reason}" for failure in listing.failures)
    metrics.shape = shape_of(*shown, "|", str(len(listing.clients)), *failures)
    return metrics
