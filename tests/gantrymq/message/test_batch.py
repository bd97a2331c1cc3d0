"""The body of a batch send."""

from __future__ import annotations

import pytest

from gantrymq.errors import MessageRejected, RecordError
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from tests.gantrymq.message.batches import iter_batch


@pytest.mark.parametrize("cut", [1, 19, 21, -1])
def test_a_batch_that_ends_too_early_is_an_error(cut: int) -> None:
    body = encode_batch([Message("T", b"one", tags="A")])
    with pytest.raises(RecordError):
        list(iter_batch(body[:cut]))


def test_properties_longer_than_their_length_field_are_refused() -> None:
    with pytest.raises(MessageRejected):
        encode_batch([Message("T", b"", properties={"A": "x" * 32767})])
