"""appliance/broker/delivery/answers.py: prepared text must say what the JSON encoder would."""

from __future__ import annotations

import pytest

from appliance.broker.delivery.answers import SendAnswers, pull_head
from gantrymq.message.ids import decode_offset_message_id, encode_host
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand

ANSWERS = SendAnswers("Region 100%", True, encode_host("127.0.0.1", 10911))


@pytest.mark.parametrize("serialize_type", [0, 1])
def test_an_answer_to_a_send_reads_back(serialize_type: int) -> None:
    request = RemotingCommand.request(310, serialize_type=serialize_type)
    answer = RemotingCommand.decode(ANSWERS.stored(request, 4660, 3, 99)[4:])
    assert (answer.code, answer.opaque, answer.is_response) == (0, request.opaque, True)
    assert decode_offset_message_id(answer.ext_fields.pop("msgId")) == ("127.0.0.1", 10911, 4660)
    assert answer.ext_fields == {"MSG_REGION": "Region 100%", "TRACE_ON": "true", "queueId": "3", "queueOffset": "99"}


def test_a_batch_lists_its_ids_by_commas() -> None:
    request = RemotingCommand.request(320)
    answer = RemotingCommand.decode(ANSWERS.stored_batch(request, (0, 255), 1, 7)[4:])
    assert answer.ext_fields["msgId"] == "7F00000100002A9F0000000000000000,7F00000100002A9F00000000000000FF"


@pytest.mark.parametrize("serialize_type", [0, 1])
def test_a_pull_head_leaves_room_for_its_body(serialize_type: int) -> None:
    request = RemotingCommand.request(11, serialize_type=serialize_type)
    head = pull_head(request, ResponseCode.SUCCESS, "FOUND", (5, 1, 9), 0, 3)
    assert int.from_bytes(head[:4]) == len(head) - 4 + 3
    answer = RemotingCommand.decode(head[4:] + b"abc")
    assert (answer.code, answer.remark, answer.body) == (0, "FOUND", b"abc")
    assert answer.ext_fields == {
        "nextBeginOffset": "5",
        "minOffset": "1",
        "maxOffset": "9",
        "suggestWhichBrokerId": "0",
    }
