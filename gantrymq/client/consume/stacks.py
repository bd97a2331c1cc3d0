"""Where the threads and listener calls of this process are right now, for a tool that asks what a consumer is doing."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from types import FrameType
from typing import Any

from gantrymq.client.consume.listener_calls import RunningCall

STACKS_CHARS_MAX = 256 << 10
AWAITS_MAX = 100


def workers_of(calls: Iterable[RunningCall]) -> list[dict[str, Any]]:
    """What each listener call in progress holds: message ids, the first message's queue, and for how long."""
    now = time.monotonic()
    return [
        {
            "heldMs": int((now - call.started) * 1000),
            "msgIds": [message.msg_id for message in call.messages],
            "topic": call.messages[0].topic,
            "brokerName": call.messages[0].broker_name,
            "queueId": call.messages[0].queue_id,
            "queueOffset": call.messages[0].queue_offset,
            "reconsumeTimes": call.messages[0].reconsume_times,
        }
        for call in calls
    ]


def stacks_of(calls: Iterable[RunningCall]) -> str:
    """The stacks of the listener calls in progress, then of all threads, as text."""
    frames = sys._current_frames()
    parts: list[str] = []
    for call in sorted(calls, key=lambda call: call.started):
        first = call.messages[0]
        held_s = time.monotonic() - call.started
        title = f"listener call, {held_s:.1f} s, {len(call.messages)} message(s), first {first.msg_id} of {first.topic}"
        if call.thread_id is not None and call.thread_id in frames:
            parts.append(f"{title}\n{_thread_stack(frames[call.thread_id])}")
        elif call.task is not None:
            parts.append(f"{title}\n{task_stack(call.task)}")
    for thread in threading.enumerate():
        if thread.ident in frames:
            parts.append(f"thread {thread.name!r}\n{_thread_stack(frames[thread.ident])}")
    return "\n".join(parts)[:STACKS_CHARS_MAX]


def task_stack(task: asyncio.Task[object]) -> str:
    """The chain of awaits of a suspended task, outermost first; asyncio itself shows only the outermost."""
    lines: list[str] = []
    waiting: Any = task.get_coro()
    for _ in range(AWAITS_MAX):
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is None:
            break
        lines += traceback.format_list(traceback.StackSummary.extract([(frame, frame.f_lineno)]))
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return "".join(lines)


def _thread_stack(frame: FrameType) -> str:
    return "".join(traceback.format_stack(frame))
