"""A master's bytes, cut anywhere, are pieces of the log; those that follow each other are handed on together."""

from __future__ import annotations

import pytest

from appliance.broker.replication.ha_frames import (
    EPOCH_HEAD,
    EPOCH_OFFSET,
    HEAD,
    OFFSET,
    STATE,
    FrameError,
    FrameReader,
    PlaceReader,
    runs,
)


def told(data: bytes, epoch: int | None = None) -> tuple[list[tuple[int, int, bytes]], bool]:
    """Place, number of pieces and bytes of each run; and whether an error ended it."""
    found = []
    try:
        for place, run in runs(FrameReader(epoch).feed(data)):
            found.append((place, len(run), b"".join(run)))
    except FrameError:
        return found, True
    return found, False


def frame(place: int, data: bytes) -> bytes:
    return HEAD.pack(place, len(data)) + data


def test_frames_that_follow_each_other_are_one_run() -> None:
    data = frame(10, b"abc") + frame(13, b"de") + frame(15, b"f")
    assert told(data) == ([(10, 3, b"abcdef")], False)
    assert told(data[:-1] + b"") == ([(10, 2, b"abcde")], False)


def test_a_gap_begins_another_run() -> None:
    assert told(frame(10, b"abc") + frame(14, b"de")) == ([(10, 1, b"abc"), (14, 1, b"de")], False)


def test_signs_of_life_stand_alone() -> None:
    data = frame(0, b"") + frame(0, b"") + frame(0, b"ab") + frame(2, b"") + frame(2, b"c")
    assert told(data) == ([(0, 1, b""), (0, 1, b""), (0, 1, b"ab"), (2, 1, b""), (2, 1, b"c")], False)


def test_states_stand_alone() -> None:
    frames = [EPOCH_HEAD.pack(2, place, len(data)) + data for place, data in ((5, b"a"), (STATE, b"{}"), (6, b"b"))]
    assert told(b"".join(frames), epoch=2) == ([(5, 1, b"a"), (STATE, 1, b"{}"), (6, 1, b"b")], False)


def test_what_comes_before_an_error_is_handed_on() -> None:
    assert told(frame(3, b"ab") + frame(5, b"c") + HEAD.pack(-7, 4)) == ([(3, 2, b"abc")], True)


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_run_may_be_cut_anywhere(cut: int) -> None:
    data = frame(10, b"abc") + frame(13, b"de")
    reader, found = FrameReader(), b""
    for part in (data[:cut], data[cut:]):
        for place, run in runs(reader.feed(part)):
            assert place == 10 + len(found)
            found += b"".join(run)
    assert found == b"abcde"


@pytest.mark.parametrize("epoch", [None, 7])
def test_places_cut_anywhere_are_read_in_their_order(epoch: int | None) -> None:
    data = b"".join(OFFSET.pack(each) if epoch is None else EPOCH_OFFSET.pack(epoch, each) for each in (5, 9, 12))
    for cut in range(len(data)):
        places = PlaceReader(epoch)
        assert places.feed(data[:cut]) + places.feed(data[cut:]) == [5, 9, 12]


def test_a_place_of_another_epoch_ends_the_connection() -> None:
    with pytest.raises(FrameError, match="epoch 8"):
        PlaceReader(7).feed(EPOCH_OFFSET.pack(7, 5) + EPOCH_OFFSET.pack(8, 9))
