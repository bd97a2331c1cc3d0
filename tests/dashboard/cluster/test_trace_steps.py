"""A message's life as bars, from what clients told."""

from __future__ import annotations

from dashboard.cluster.trace_steps import lanes_of, steps_of
from gantrymq.client.produce.trace_records import ConsumeOutcome, TraceKind, TraceRecord
from gantrymq.message.model import MessageExt

HOST = ("127.0.0.1", 1)
STORED = MessageExt("t", b"", 0, {}, 0, 0, 0, 0, 0, 1000, HOST, 1010, HOST, 0, 0, 0, "broker-a")


def record(kind: TraceKind, time_ms: int = 0, **fields: object) -> TraceRecord:
    return TraceRecord(kind=kind, msg_id="X", time_ms=time_ms, **fields)  # type: ignore[arg-type]


def test_steps_stand_in_the_order_of_time_with_their_outcome() -> None:
    failed = ConsumeOutcome.EXCEPTION
    steps = steps_of(
        STORED,
        [
            record(TraceKind.SUB_BEFORE, 1200, group="g", request_id="r2", retry_times=1, client_host="10.0.0.7"),
            record(TraceKind.SUB_BEFORE, 1100, group="g", request_id="r1"),
            record(TraceKind.PUB, 1000, group="p", cost_ms=20),
            record(TraceKind.SUB_AFTER, request_id="r1", cost_ms=40, is_success=False, outcome=failed),
        ],
    )
    assert [(step.what, step.who, step.took_ms, step.outcome, step.is_bad) for step in steps] == [
        ("Sent", "p", 20, "", False),
        ("Stored", "broker-a", 0, "", False),
        ("Handled, try 1", "g", 40, "exception", True),
        ("Handled, try 2", "g at 10.0.0.7", None, "no end reported: it is running, or its client disconnected", False),
    ]
    assert [(float(step.left), float(step.width)) for step in steps[:3]] == [(0, 10), (5, 0.8), (50, 20)]
    assert all(float(step.left) + float(step.width) <= 100 for step in steps)


def test_without_what_clients_told_there_is_the_broker() -> None:
    [step] = steps_of(STORED, [])
    assert (step.what, step.at_ms) == ("Stored", 1010)


def test_an_outcome_of_another_client_is_harmless() -> None:
    ended = record(TraceKind.SUB_AFTER, request_id="r", is_success=False, outcome=99)
    *_, handled = steps_of(STORED, [record(TraceKind.SUB_BEFORE, 1100, group="g", request_id="r"), ended])
    assert (handled.outcome, handled.is_bad) == ("failed", True)


def test_a_waterfall_has_the_sender_and_broker_first_then_each_group_with_its_tries() -> None:
    steps = steps_of(
        STORED,
        [
            record(TraceKind.PUB, 1000, group="p"),
            record(TraceKind.SUB_BEFORE, 1050, group="slow", request_id="s1"),
            record(TraceKind.SUB_BEFORE, 1011, group="fast", request_id="f1"),
            record(TraceKind.SUB_AFTER, request_id="f1", cost_ms=0),
            record(TraceKind.SUB_BEFORE, 1090, group="slow", request_id="s2", retry_times=1),
        ],
    )
    before, fast, slow = lanes_of(steps)
    assert [step.what for step in before.steps] == ["Sent", "Stored"] and before.waited == ""
    assert (fast.name, slow.name) == ("fast", "slow")
    assert [step.what for step in slow.steps] == ["Handled, try 1", "Handled, try 2"]
    assert [step.after_ms for step in slow.steps] == [50, 90]
    assert fast.waited.startswith("1") and slow.waited.startswith("40")
    assert before.steps[1].took == "" and fast.steps[0].took == "< 1 ms", "clients report whole milliseconds"
