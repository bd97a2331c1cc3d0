"""The compiled load counts what it is answered, and believes no answer that does not fit."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from appliance.bench.load_spec import LoadResult, LoadSpec
from gantrymq.errors import GantryError
from gantrymq.message.properties import decode_properties
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol
from tests.conftest import require_tool

Answer = Callable[[list[RemotingCommand]], bytes | None]  # all requests that have arrived together; None closes


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[tuple[str, list[RemotingCommand]]]:
    """Serves one connection; the value is its address, and the requests so far."""
    seen: list[RemotingCommand] = []

    def serve() -> None:
        with contextlib.suppress(OSError):  # the test is over
            connection, _ = listener.accept()
            with connection:
                protocol = RemotingProtocol()
                while data := connection.recv(1 << 16):
                    protocol.receive_data(data)
                    if not (requests := list(iter(protocol.next_command, None))):
                        continue
                    seen.extend(requests)
                    if (back := answer(requests)) is None:
                        return
                    connection.sendall(back)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", seen
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes an accept that nothing came to
            thread.join()


@pytest.fixture(scope="module")
def load() -> LoadProgram:
    require_tool("cc", "the load generator is a C program")
    return LoadProgram(generator_program())


def run(load: LoadProgram, answer: Answer, **given: Any) -> tuple[LoadResult, list[RemotingCommand]]:
    """At most 20 messages, whatever the machine does meanwhile."""
    chosen = {"kind": "send", "messages_max": 20, "warm_s": 0, "measure_s": 60} | given
    with answering(answer) as (address, seen):
        return load.run(LoadSpec(address=address, topic="T", **chosen)), seen


def all_well(requests: list[RemotingCommand]) -> bytes:
    return b"".join(request.reply(0, None, {"queueId": "0"}).encode() for request in requests)


@pytest.mark.parametrize("binary_headers", [False, True])
def test_each_message_is_sent_once_and_its_answer_counted(load: LoadProgram, binary_headers: bool) -> None:
    result, seen = run(load, all_well, in_flight=7, binary_headers=binary_headers)
    assert result.acknowledged == result.measured == len(seen) == 20
    assert result.errors == {} and 0 < result.p50_ms <= result.p99_ms <= result.max_ms * 1.01 and result.rate > 0
    assert len({request.opaque for request in seen}) == 20
    assert len({decode_properties(request.ext_fields["i"])["UNIQ_KEY"] for request in seen}) == 20


def test_a_server_that_stands_still_is_measured_to_its_first_answer(load: LoadProgram) -> None:
    def late(requests: list[RemotingCommand]) -> bytes:
        time.sleep(0.1)  # longer than is measured
        return all_well(requests)

    result, _ = run(load, late, messages_max=0, measure_s=0.02)
    assert result.measured > 0 and result.rate > 0


def test_answers_may_come_in_any_order_and_with_any_header_fields(load: LoadProgram) -> None:
    def backwards(requests: list[RemotingCommand]) -> bytes:
        fields = {"nested": '{"opaque":1,"x":"}"}', "quoted": 'a "b" \\ c'}
        return b"".join(request.reply(0, 'a "remark", {', fields).encode() for request in reversed(requests))

    result, _ = run(load, backwards, in_flight=8)
    assert (result.acknowledged, result.errors) == (20, {})


def test_refused_messages_are_counted_by_their_words(load: LoadProgram) -> None:
    count = 0

    def every_second(requests: list[RemotingCommand]) -> bytes:
        nonlocal count
        answers = []
        for request in requests:
            count += 1
            answers.append(request.reply(2 * (count % 2), 'busy "now"' if count % 2 else None).encode())
        return b"".join(answers)

    result, seen = run(load, every_second, in_flight=2)
    assert result.acknowledged == 10 and len(seen) == 20
    assert list(result.errors.values()) == [10]
    assert next(iter(result.errors)).startswith("2 busy")


def test_one_way_messages_end_with_one_that_is_answered(load: LoadProgram) -> None:
    def only_the_last(requests: list[RemotingCommand]) -> bytes:
        return all_well([request for request in requests if not request.is_oneway])

    result, seen = run(load, only_the_last, one_way=True)
    assert [request.is_oneway for request in seen] == [True] * 20 + [False]
    assert result.acknowledged == 21, "the last one is a message, too"


def test_one_way_messages_that_are_refused_all_the_same_are_counted(load: LoadProgram) -> None:
    """Apache's broker answers them, too, when it is busy."""

    def busy(requests: list[RemotingCommand]) -> bytes:
        return b"".join(request.reply(2 * request.is_oneway, "busy").encode() for request in requests)

    result, _ = run(load, busy, one_way=True)
    assert (result.acknowledged, list(result.errors.values())) == (1, [20])


def test_pulls_go_through_the_queue_and_begin_again(load: LoadProgram) -> None:
    def found(requests: list[RemotingCommand]) -> bytes:
        answers = []
        for request in requests:
            following = str(int(request.ext_fields["queueOffset"]) + 5)
            answers.append(request.reply(0, "FOUND", {"nextBeginOffset": following}, bytes(5 * 1024)).encode())
        return b"".join(answers)

    result, seen = run(load, found, kind="pull", queue_length=10, messages_max=30)
    assert result.acknowledged == 30
    assert [int(request.ext_fields["queueOffset"]) for request in seen] == [0, 5] * 3


def wrong_opaque(requests: list[RemotingCommand]) -> bytes:
    requests[0].opaque += 1
    return requests[0].reply(0).encode()


def too_short(requests: list[RemotingCommand]) -> bytes:
    return requests[0].reply(0, None, {"nextBeginOffset": "32"}, b"few").encode()


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        ("send", wrong_opaque, "opaque"),
        ("send", lambda requests: requests[0].encode(), "sent a request"),
        ("send", lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", "no answer"),
        ("send", lambda _: b'\0\0\0\x08\0\0\0\x04{"a}', "not understood"),
        ("send", lambda _: b"\0\0\0\x0a\1\0\0\x06binary", "not understood"),
        ("send", lambda _: None, "closed"),
        ("pull", too_short, "cannot hold"),
    ],
)
def test_what_is_no_answer_ends_it_with_a_sentence(load: LoadProgram, kind: str, answer: Answer, words: str) -> None:
    with pytest.raises(GantryError, match=words):
        run(load, answer, kind=kind, queue_length=100)


def test_a_load_without_a_broker_says_so(load: LoadProgram) -> None:
    with pytest.raises(GantryError, match="refused"):
        load.run(LoadSpec(kind="send", address="127.0.0.1:1", topic="T"))
