"""The load's frames are requests that a broker understands, and every message has a key of its own."""

from __future__ import annotations

from appliance.bench.frames import PullFrame, TimedFrame
from gantrymq.message.properties import decode_properties
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol
from tests.faults.kit.frame_ring import send_ring


def _commands(views: list[memoryview]) -> list[RemotingCommand]:
    protocol = RemotingProtocol()
    commands = []
    for view in views:
        protocol.receive_data(bytes(view))
        while (command := protocol.next_command()) is not None:
            commands.append(command)
    assert protocol.pending_bytes == 0
    return commands


def test_a_ring_hands_out_whole_requests_with_opaques_and_keys_of_their_own_also_where_it_turns() -> None:
    ring = send_ring("T", [2, 3, 0, 1], 1024, in_flight=64)
    commands = [command for count in (50, 50, 1, 64) for command in _commands(ring.take(count))]
    assert len(commands) == 165
    assert {command.code for command in commands} == {RequestCode.SEND_MESSAGE_V2}
    assert [command.ext_fields["e"] for command in commands[:5]] == ["2", "3", "0", "1", "2"]
    assert {len(command.body) for command in commands} == {1024}
    assert len({command.opaque for command in commands}) == 165
    properties = [decode_properties(command.ext_fields["i"]) for command in commands]
    keys = {each["UNIQ_KEY"] for each in properties}
    assert len(keys) == 165
    assert {len(key) for key in keys} == {32}
    assert properties[0] == {"UNIQ_KEY": properties[0]["UNIQ_KEY"], "WAIT": "true", "TAGS": "TagA"}


def test_two_rings_never_share_a_key() -> None:
    one, other = (_commands(send_ring("T", [0], 10, 1).take(1))[0] for _ in range(2))
    assert one.ext_fields["i"] != other.ext_fields["i"]


def test_a_pull_asks_for_the_offset_it_is_given() -> None:
    frame = PullFrame("T", 3, suspend=False)
    for offset in (0, 32, 123_456):
        (command,) = _commands([memoryview(frame.at(offset))])
        assert int(command.ext_fields["queueOffset"]) == offset
        assert command.ext_fields["queueId"] == "3"


def test_a_timed_message_carries_when_it_was_sent() -> None:
    (command,) = _commands([memoryview(TimedFrame("T", 0, 1024).at(1_000_000_007, 12_345))])
    assert command.opaque == 1_000_000_007
    assert command.body.startswith(b"@sent@0000000000000012345")
    assert len(command.body) == 1024
