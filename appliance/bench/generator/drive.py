"""Runs the load generator: a process for each load, which gets a plan: prepared requests, and where it patches them.

plan.h says what each line of a plan means.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import orjson

from appliance.bench.frames import (
    BATCH_PROPERTIES,
    DIGITS,
    DIGITS_MARK,
    Style,
    batch_item,
    key_prefix,
    message_properties,
    positions,
    pull_frame,
    send_frame,
)
from appliance.bench.load_spec import TOPIC_DIGITS, LoadResult, LoadSpec
from gantrymq.errors import ConfigError, GantryError
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import JSON, ONEWAY_FLAG, ROCKETMQ
from gantrymq.remoting.signature import Credentials

_KINDS = {"send": "send", "batch": "send", "pull": "pull"}
_SIGNED_FRAMES = 256  # a signature covers the key, so signed messages take turns through so many keys
_TOPIC_MARK = b"%" * TOPIC_DIGITS
_QUEUE_MARK = "~"
_KEY_MODULUS = 10**DIGITS
# In a ROCKETMQ header, behind the two words of a frame: code 2, language 1, version 2; opaque 4; flag 4.
_BINARY_OPAQUE_AT = 8 + 5
_BINARY_FLAG_AT = _BINARY_OPAQUE_AT + 4 + 3  # its lowest byte

CHECKOUT = Path(__file__).parents[3]


class LoadProgram:
    """The compiled program; the open loop of the latency load is `bench/latency.py`."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def run(self, spec: LoadSpec) -> LoadResult:
        """Raises GantryError with the program's words when it fails or hangs."""
        command: list[str | Path]
        if spec.kind == "latency":
            command, plan = [sys.executable, "-m", "appliance.bench.latency"], orjson.dumps(asdict(spec))
        else:
            command, plan = [self._program], plan_of(spec)
        try:
            done = subprocess.run(
                command, input=plan, cwd=CHECKOUT, capture_output=True, timeout=spec.timeout_s, check=False
            )
        except subprocess.TimeoutExpired as exc:
            raise GantryError(f"load {spec.kind} against {spec.address} hangs") from exc
        if done.returncode != 0:
            text = done.stderr.decode(errors="replace")[-2000:].strip()
            raise GantryError(f"load {spec.kind} against {spec.address} failed: {text or done.returncode}")
        return LoadResult(**orjson.loads(done.stdout))


def plan_of(spec: LoadSpec) -> bytes:
    """What the program gets on its standard input. Raises ConfigError for what it cannot do."""
    if spec.kind not in _KINDS:
        raise ConfigError(f"the load generator has no {spec.kind} load")
    if spec.one_way and spec.kind == "pull":
        raise ConfigError("a pull needs its answer: it cannot be one-way")
    frames = _frames(spec)
    if len({len(frame) for frame in frames}) != 1:
        raise ConfigError(f"requests of one load must have one size: use up to 10 queues, not {spec.queue_count}")
    host, _, port = spec.address.rpartition(":")
    lines = {
        "kind": "one-way" if spec.one_way else _KINDS[spec.kind],
        "host": host,
        "port": port,
        "connections": spec.connections,
        "in_flight": spec.in_flight,
        "warm_ms": round(spec.warm_s * 1000),
        "measure_ms": max(round(spec.measure_s * 1000), 1),
        "messages_max": spec.messages_max,
        "messages_per_frame": spec.batch if spec.kind == "batch" else 1,
        "body_bytes": spec.body_bytes,
        "queue_length": spec.queue_length,
        **_places(spec, frames[0]),
    }
    text = [f"{name} {value}" for name, value in lines.items()]
    text += [f"number {number}" for number in _numbers(spec, frames[0])]
    text.append(f"frames {len(frames)} {len(frames[0])}\n")
    return "\n".join(text).encode() + b"".join(frames)


def _frames(spec: LoadSpec) -> list[bytes]:
    credentials = Credentials(spec.access_key, spec.secret_key) if spec.access_key else None
    style = Style(ROCKETMQ if spec.binary_headers else JSON, spec.one_way, credentials)
    queues = range(spec.queue_count)
    if spec.kind == "pull":
        return [pull_frame(spec.topic, queue, suspend=False, style=style) for queue in queues]
    if spec.topic_count > 1:
        return [_single(spec, spec.topic + _TOPIC_MARK.decode(), _QUEUE_MARK, DIGITS_MARK.decode(), style)]
    if spec.kind == "batch":
        item = batch_item(message_properties(key_prefix()), bytes(spec.body_bytes))
        body, code = item * spec.batch, RequestCode.SEND_BATCH_MESSAGE
        return [send_frame(code, spec.topic, queue, BATCH_PROPERTIES, body, style) for queue in queues]
    if credentials is None:
        return [_single(spec, spec.topic, queue, DIGITS_MARK.decode(), style) for queue in queues]
    keys = [f"{number:0{DIGITS}d}" for number in range(_SIGNED_FRAMES)]
    return [_single(spec, spec.topic, index % spec.queue_count, key, style) for index, key in enumerate(keys)]


def _single(spec: LoadSpec, topic: str, queue: int | str, key: str, style: Style) -> bytes:
    message = message_properties(key_prefix(), key)
    return send_frame(RequestCode.SEND_MESSAGE_V2, topic, queue, message, bytes(spec.body_bytes), style)


def _places(spec: LoadSpec, frame: bytes) -> dict[str, int]:
    """Where opaque, flag and queue offset stand in every frame."""
    places = {"binary_header": int(spec.binary_headers)}
    flag_at = _BINARY_FLAG_AT
    if spec.binary_headers:
        places["opaque_at"] = _BINARY_OPAQUE_AT
    else:
        places["opaque_at"] = _behind(frame, b'"opaque":')
        flag_at = _behind(frame, b'"flag":')
    if spec.one_way:
        asks, answered = (ONEWAY_FLAG, 0) if spec.binary_headers else (ord(str(ONEWAY_FLAG)), ord("0"))
        assert frame[flag_at] == asks
        places |= {"flag_at": flag_at, "flag_answered": answered}
    if spec.kind == "pull":
        places["offset_at"] = frame.index(DIGITS_MARK)
    return places


def _numbers(spec: LoadSpec, frame: bytes) -> list[str]:
    """The digits that change from message to message: "at width add divisor modulus"."""
    if spec.kind == "pull":
        return []
    numbers = [f"{at} {DIGITS} {add} 1 {_KEY_MODULUS}" for add, at in enumerate(positions(frame, DIGITS_MARK))]
    if spec.topic_count > 1:
        numbers.append(f"{frame.index(_TOPIC_MARK)} {TOPIC_DIGITS} 0 1 {spec.topic_count}")
        numbers.append(f"{frame.index(_QUEUE_MARK.encode())} 1 0 {spec.topic_count} {spec.queue_count}")
    return numbers


def _behind(frame: bytes, name: bytes) -> int:
    return frame.rindex(name, 0, frame.index(b'"serializeTypeCurrentRPC"')) + len(name)
