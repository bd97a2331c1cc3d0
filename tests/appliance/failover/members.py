"""A master and its slave as they see etcd in one moment, and themselves; tests change single fields."""

from __future__ import annotations

import dataclasses
from typing import Any

from appliance.failover.own import Own, Role
from appliance.failover.view import Beat, Holder, Term, TermState, View

ONE, TWO, THREE = Holder(1, "a"), Holder(2, "b"), Holder(3, "c")
TERM = Term(4, "four", 1, "h1:10911", "s1", TermState.OPEN, frozenset({ONE, TWO}))
VIEW = View(
    7,
    received=99.9,
    changed=50.0,
    adopted_cluster_id=7,
    group="g",
    ids={1: "u1", 2: "u2", 3: "u3"},
    term=TERM,
    term_revision=30,
    beat=Beat("s1", 9),
    beat_revision=40,
    switch_after=95.0,
    starts={3: 0, 4: 950},
)
SLAVE = Own(
    id=2,
    store_uuid="u2",
    group="g",
    boot="b",
    session="s2",
    role=Role.FOLLOWING,
    epoch=4,
    epoch_id="four",
    highest=4,
    log_end=1000,
    dispatched_end=1000,
    confirmed=900,
    following=4,
    is_automatic=True,
)
MASTER = dataclasses.replace(
    SLAVE,
    id=1,
    store_uuid="u1",
    boot="a",
    session="s1",
    role=Role.MASTER,
    cluster_id=7,
    term_revision=30,
    first_sent=98.0,
    required=frozenset({ONE, TWO}),
    following=0,
)
NOW = 100.0


def viewed(**changes: Any) -> View:
    """VIEW, with changes of the term's fields under term_…"""
    of_term = {name.removeprefix("of_"): changes.pop(name) for name in list(changes) if name.startswith("of_")}
    return dataclasses.replace(VIEW, term=dataclasses.replace(TERM, **of_term), **changes)


def own(of: Own, **changes: Any) -> Own:
    return dataclasses.replace(of, **changes)
