"""A byte stream becomes commands, however it was cut."""

from __future__ import annotations

import pytest

from gantrymq.errors import FrameError
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import FRAME_BYTES_MAX, RemotingProtocol

FRAMES = [RemotingCommand.request(10, {"topic": "T"}, bytes(n)).encode() for n in (0, 1, 300, 70_000)]


def commands_of(protocol: RemotingProtocol) -> list[RemotingCommand]:
    return list(iter(protocol.next_command, None))


@pytest.mark.parametrize("chunk_bytes", [1, 3, 7, len(FRAMES[0]) - 1, 4096, 1 << 20])
def test_frames_come_out_whole_and_in_order_however_the_stream_is_cut(chunk_bytes: int) -> None:
    stream = b"".join(FRAMES)
    protocol = RemotingProtocol()
    found: list[RemotingCommand] = []
    for start in range(0, len(stream), chunk_bytes):
        protocol.receive_data(stream[start : start + chunk_bytes])
        found += commands_of(protocol)
    assert found == [RemotingCommand.decode(frame[4:]) for frame in FRAMES]
    assert protocol.pending_bytes == 0


@pytest.mark.parametrize("total", [-1, 0, 3, FRAME_BYTES_MAX - 3, 0x7FFFFFFF, 0x16030100])
def test_a_length_outside_the_limits_is_a_frame_error(total: int) -> None:
    protocol = RemotingProtocol()
    protocol.receive_data(total.to_bytes(4, signed=True) + b"\0\0\0\0")
    with pytest.raises(FrameError):
        protocol.next_command()


def test_the_largest_frame_is_taken() -> None:
    header = b'{"code":0,"flag":0,"opaque":1}'
    frame = (FRAME_BYTES_MAX - 4).to_bytes(4) + len(header).to_bytes(4) + header
    protocol = RemotingProtocol()
    protocol.receive_data(frame)
    assert protocol.next_command() is None
    protocol.receive_data(b"x" * (FRAME_BYTES_MAX - len(frame)))
    command = protocol.next_command()
    assert command is not None
    assert len(command.body) == FRAME_BYTES_MAX - len(frame)


@pytest.mark.parametrize("chunk_bytes", [1, 5, 7, 8, 1 << 20])
def test_a_header_above_the_limit_is_an_error_as_soon_as_its_length_is_there(chunk_bytes: int) -> None:
    protocol = RemotingProtocol(header_bytes_max=1000)
    stream = FRAMES[3] + (2000).to_bytes(4) + (1001).to_bytes(4)
    found: list[RemotingCommand] = []
    with pytest.raises(FrameError, match="header of 1001 bytes"):
        for start in range(0, len(stream), chunk_bytes):
            protocol.receive_data(stream[start : start + chunk_bytes])
            found += commands_of(protocol)
    if chunk_bytes < 8:
        assert [command.body for command in found] == [bytes(70_000)], "a long body is no long header"
