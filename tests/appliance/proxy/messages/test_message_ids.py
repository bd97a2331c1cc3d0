from __future__ import annotations

import pytest

from appliance.proxy.messages.message_ids import TransactionId
from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code


def test_an_id_says_where_the_half_message_is() -> None:
    place = TransactionId("broker a-ü", 7, 1 << 60)
    assert TransactionId.from_text(place.to_text()) == place


@pytest.mark.parametrize("text", ["x", "ä", "MQ", "7F000001ABCDEF", TransactionId("b", 1, 2).to_text()[:-4], "=" * 9])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        TransactionId.from_text(text)
    assert refused.value.code == Code.INVALID_TRANSACTION_ID
