"""The load counts what it is answered: against the null server, and against a server that refuses."""

from __future__ import annotations

import socket
import threading
from collections import Counter

import pytest

from appliance.bench.load_spec import PULLED, LoadSpec, percentile_of_counts
from appliance.bench.python_load.driver import PythonLoad
from appliance.bench.python_load.load import Meter, run_send
from gantrymq.errors import GantryError
from gantrymq.remoting.protocol import RemotingProtocol


def test_a_load_that_was_not_scheduled_for_longer_than_planned_measures_all_the_same() -> None:
    meter = Meter(LoadSpec(kind="send", address="", topic="T", warm_s=0.1, measure_s=0.2))
    late = meter._start_ns + 5_000_000_000
    assert meter.goes_on(late), "the measured part begins when the machine gets to it"
    meter.messages = 10
    assert not meter.goes_on(late + 200_000_000)
    assert meter.result().rate == pytest.approx(50)


def test_a_load_is_measured_to_its_first_answer() -> None:
    meter = Meter(LoadSpec(kind="send", address="", topic="T", warm_s=0.1, measure_s=0.2))
    begun = meter._start_ns + 100_000_000
    assert meter.goes_on(begun) and meter.goes_on(begun + 2_000_000_000)
    meter.messages = 1
    assert not meter.goes_on(begun + 2_000_000_000)
    assert meter.result().rate == pytest.approx(0.5)


def test_a_load_that_has_all_its_messages_at_its_first_look_counts_from_the_start() -> None:
    meter = Meter(LoadSpec(kind="send", address="", topic="T", warm_s=0.1, messages_max=10))
    meter.messages = 10
    assert not meter.goes_on(meter._start_ns + 2_000_000_000)
    assert meter.result().rate == pytest.approx(5)


@pytest.mark.parametrize(
    ("kind", "connections", "in_flight"),
    [("send", 1, 1), ("send", 1, 64), ("send", 4, 8), ("batch", 2, 2), ("pull", 1, 1), ("pull", 4, 1)],
)
def test_every_kind_of_load_runs_against_the_null_server(kind: str, connections: int, in_flight: int) -> None:
    with PythonLoad().null_server() as address:
        spec = LoadSpec(
            kind=kind,
            address=address,
            topic="T",
            connections=connections,
            in_flight=in_flight,
            warm_s=0.02,
            measure_s=0.1,
            queue_length=PULLED,
        )
        result = PythonLoad().run(spec)
    assert result.errors == {}
    assert result.acknowledged >= result.measured > 0
    assert result.rate > 0
    assert 0 < result.p50_ms <= result.p99_ms
    assert 0 < result.cpu_share <= 1.1


def test_refused_messages_are_counted_as_errors_and_not_as_acknowledged() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_refuse_every_second, args=(listener,))
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        spec = LoadSpec(kind="send", address=address, topic="T", warm_s=0, measure_s=60, messages_max=10)
        result = run_send(spec)
        thread.join()
    assert result.errors == {"2 system busy": 11}  # every second one, and one more was under way
    assert result.acknowledged == result.measured == 10


def test_a_load_without_a_broker_says_so() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(GantryError, match="refused"):
            PythonLoad().run(LoadSpec(kind="send", address=f"127.0.0.1:{unused.getsockname()[1]}", topic="T"))


def test_what_it_cannot_put_on_is_refused() -> None:
    with pytest.raises(GantryError, match="compiled"):
        PythonLoad().run(LoadSpec(kind="send", address="127.0.0.1:1", topic="T", binary_headers=True))


def test_percentiles_are_values_that_were_counted() -> None:
    counts = Counter({10: 98, 20: 1, 500: 1})
    assert [percentile_of_counts(counts, percent) for percent in (50, 98, 99, 100)] == [10, 10, 20, 500]
    assert percentile_of_counts(Counter(), 50) == 0


def _refuse_every_second(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    protocol, answered = RemotingProtocol(), 0
    with connection:
        while data := connection.recv(1 << 16):
            protocol.receive_data(data)
            while (request := protocol.next_command()) is not None:
                answered += 1
                answer = request.reply(2, "system busy") if answered % 2 else request.reply(0)
                connection.sendall(answer.encode())
