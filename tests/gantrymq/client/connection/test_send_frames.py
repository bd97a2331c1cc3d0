"""Frames from templates are those that the request itself would be encoded to."""

from __future__ import annotations

import pytest

from gantrymq import Message, MessageQueue
from gantrymq.client.connection import send_frames
from gantrymq.client.connection.send_codec import Outgoing, pack, send_request
from gantrymq.client.connection.send_frames import SendFrames, is_plain
from gantrymq.message import properties as names
from gantrymq.message import sysflag
from gantrymq.remoting.command import RemotingCommand


def decoded(frame: bytes) -> RemotingCommand:
    return RemotingCommand.decode(frame[4:])


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("g", Message("T", b"x")),
        ("g%d", Message("%RETRY%g", b"x" * 5000)),
        ('g"\\', Message("T%s", b"\0\xff", tags="a", keys=["k1", "k2"], properties={"ö": '"quoted" \\ \u2028'})),
        ("g", Message("T", b"x", flag=-7, delay_level=3)),
    ],
)
def test_a_frame_is_the_request_byte_for_byte(group: str, message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_123_456_789)
    outgoing = pack(message)
    outgoing.sys_flag |= sysflag.TRANSACTION_PREPARED
    frames = SendFrames(group, 8)
    for queue_id in (0, 11, 0):
        opaque, frame = frames.frame(outgoing, MessageQueue(message.topic, "b", queue_id))
        request = send_request(outgoing, group, queue_id, 8)
        request.opaque = opaque
        assert frame == request.encode()
    assert decoded(frame).body == outgoing.body


def test_each_frame_has_an_opaque_of_its_own() -> None:
    frames, outgoing, queue = SendFrames("g", 4), pack(Message("T", b"x")), MessageQueue("T", "b", 0)
    told = [frames.frame(outgoing, queue) for _ in range(3)]
    assert len({opaque for opaque, _ in told}) == 3
    assert [decoded(frame).opaque for _, frame in told] == [opaque for opaque, _ in told]


def test_more_queues_than_templates_are_kept_get_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_frames, "TEMPLATES_MAX", 3)
    frames, outgoing = SendFrames("g", 4), pack(Message("T", b"x"))
    for queue_id in range(10):
        _, frame = frames.frame(outgoing, MessageQueue("T", "b", queue_id))
        assert decoded(frame).ext_fields["e"] == str(queue_id)


def test_what_the_template_does_not_say_is_not_plain() -> None:
    def changed(**fields: object) -> Outgoing:
        outgoing = pack(Message("T", b"x"))
        for name, value in fields.items():
            setattr(outgoing, name, value)
        return outgoing

    assert is_plain(pack(Message("T", b"x", tags="a", delay_level=1)))
    assert not is_plain(changed(is_batch=True))
    assert not is_plain(changed(reconsume_times=1))
    assert not is_plain(changed(max_reconsume_times=0))
    assert not is_plain(pack(Message("T", b"x", properties={names.MSG_TYPE: "reply"})))
