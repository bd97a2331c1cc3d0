"""When the end of an Apache master's log is final: fenced, and nothing added for as long as a put may take."""

from __future__ import annotations

from appliance.broker.replication.apache_fence import SETTLED_S, ApacheFence

MASTER = "10.0.0.1:10911"
SOON = SETTLED_S / 2


def test_the_end_counts_once_it_has_been_the_same_behind_the_fence() -> None:
    fence = ApacheFence()
    fence.look(MASTER, "SYNC_MASTER", (0, 800), 0.0)
    assert (fence.end, fence.is_up, fence.master_role) == (-1, False, "SYNC_MASTER")
    fence.look(MASTER, "SLAVE", (0, 900), 100.0)
    assert (fence.end, fence.is_up) == (-1, True)
    fence.look(MASTER, "SLAVE", (0, 900), 100.0 + SOON)
    assert fence.end == -1
    fence.look(MASTER, "SLAVE", (100, 900), 100.0 + SETTLED_S)
    assert (fence.begin, fence.end, fence.master_role) == (100, 900, "SYNC_MASTER")


def test_a_put_that_was_under_way_has_it_begin_anew() -> None:
    fence = ApacheFence()
    for at, end in ((0.0, 900), (SOON, 950), (SETTLED_S, 950)):
        fence.look(MASTER, "SLAVE", (0, end), at)
        assert fence.end == -1
    fence.look(MASTER, "SLAVE", (0, 950), SOON + SETTLED_S)
    assert fence.end == 950


def test_a_fence_that_is_lifted_counts_no_more() -> None:
    fence = ApacheFence()
    for at in (0.0, SETTLED_S):
        fence.look(MASTER, "SLAVE", (0, 900), at)
    fence.look(MASTER, "ASYNC_MASTER", (0, 900), SETTLED_S + 1)
    assert (fence.begin, fence.end, fence.is_up) == (-1, -1, False)
    fence.look(MASTER, "SLAVE", (0, 900), SETTLED_S + 2)
    assert fence.end == -1


def test_another_master_and_an_end_that_is_not_said_settle_nothing() -> None:
    fence = ApacheFence()
    fence.look(MASTER, "SLAVE", (0, 900), 0.0)
    fence.look("10.0.0.9:10911", "SLAVE", (0, 900), SETTLED_S)
    assert fence.end == -1
    for at in (0.0, SETTLED_S):
        fence.look(MASTER, "SLAVE", (-1, -1), at)
    assert fence.end == -1
