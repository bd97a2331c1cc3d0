"""Which clients a list is about, and in which order; page and REST alike."""

from __future__ import annotations

from dashboard.clients.values import ClientListing, ConnectedClient

SORTS = ("client", "language", "since", "rate", "connections")


def select(
    listing: ClientListing, text: str = "", *, with_tools: bool = False, only_twice: bool = False
) -> list[ConnectedClient]:
    """Those with a part of their id, address, groups, account, language or version."""
    part = text.strip().lower()
    rows = listing.clients if with_tools else listing.named
    return [one for one in rows if (one.is_twice or not only_twice) and part in _words(one).lower()]


def in_order(rows: list[ConnectedClient], sort: str, *, down: bool) -> list[ConnectedClient]:
    """Sorted; what is not known is at the end either way."""
    known = [one for one in rows if _key(one, sort) is not None]
    unknown = [one for one in rows if _key(one, sort) is None]
    by_key = sorted(known, key=lambda one: (_key(one, sort), one.name), reverse=down)
    return sorted([*by_key, *unknown], key=lambda one: not one.client_id) if sort == "client" else [*by_key, *unknown]


def _key(one: ConnectedClient, sort: str) -> float | str | None:
    match sort:
        case "language":
            return f"{one.language} {one.version:06d}"
        case "since":
            return one.since
        case "rate":
            return one.rate
        case "connections":
            return float(len(one.connections))
    return one.name.lower()


def _words(one: ConnectedClient) -> str:
    addresses = (connection.address for connection in one.connections)
    return " ".join(
        (one.client_id, one.language, one.version_text, *one.accounts, *one.producer_groups, *one.consumer_groups,
         *one.proxies, one.serves, *addresses)
    )  # fmt: skip
