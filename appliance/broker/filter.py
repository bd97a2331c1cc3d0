"""Which messages a subscription wants: tag filters as sets of Java hash codes.

A consume-queue unit carries the hash of the message's tag, so the broker filters without reading messages. Different
tags may share a hash; the client compares the strings again, so too much is safe and too little is not.
"""

from __future__ import annotations

import functools

from gantrymq.message.properties import string_hash_code
from gantrymq.remoting.bodies import SubscriptionData

SUB_ALL = "*"


def filter_of(subscription: SubscriptionData) -> frozenset[int] | None:
    """The wanted hash codes of a TAG subscription; None is everything."""
    if subscription.sub_string in ("", SUB_ALL):
        return None
    if subscription.code_set:
        return frozenset(subscription.code_set)
    return parse_tags(subscription.sub_string)  # clients that send the expression only


@functools.lru_cache(maxsize=4096)
def parse_tags(expression: str) -> frozenset[int] | None:
    """`TagA || TagB` to hash codes; None for everything ("" and "*")."""
    tags = [tag.strip() for tag in expression.split("||")]
    tags = [tag for tag in tags if tag]
    if not tags or tags == [SUB_ALL]:
        return None
    return frozenset(map(string_hash_code, tags))


def is_wanted(wanted: frozenset[int] | None, tags_code: int) -> bool:
    """Whether a unit's tags code (64 bits of which the low 32 are the hash) passes."""
    if wanted is None:
        return True
    code = tags_code & 0xFFFFFFFF
    return (code - 0x100000000 if code >= 0x80000000 else code) in wanted
