from __future__ import annotations

from appliance.proxy.control_frames import CONTROL_BURST, WINDOW_BURST, ControlFrames, Frame


def test_pings_are_counted_and_some_a_second_are_fine() -> None:
    frames = ControlFrames(0.0)
    assert all(frames.allows(Frame.PING, 0.0) for _ in range(int(CONTROL_BURST)))
    assert not frames.allows(Frame.PING, 0.0)
    assert all(frames.allows(Frame.PING, 10.0 + second) for second in range(1000))


def test_windows_are_opened_for_what_was_sent() -> None:
    frames = ControlFrames(0.0)
    assert all(frames.allows(Frame.WINDOW, 0.0, sent=number) for number in range(10_000))
    assert not all(frames.allows(Frame.WINDOW, 0.0, sent=9999) for _ in range(int(WINDOW_BURST) + 1))


def test_old_streams_may_be_given_up_and_new_ones_not_without_end() -> None:
    frames = ControlFrames(0.0)
    assert all(frames.allows(Frame.RESET, 0.0, age_s=5.0) for _ in range(10_000))
    assert not all(frames.allows(Frame.RESET, 0.0) for _ in range(int(CONTROL_BURST) + 1))


def test_a_client_may_ping_for_what_it_reads() -> None:
    frames = ControlFrames(0.0)
    assert all(frames.allows(Frame.PING, 0.0, sent=number) for number in range(10_000))
    assert not all(frames.allows(Frame.PING, 0.0, sent=9999) for _ in range(int(CONTROL_BURST) + 1))


def test_other_frames_are_counted_beside_pings() -> None:
    frames = ControlFrames(0.0)
    assert all(frames.allows(Frame.OTHER, 0.0) for _ in range(int(CONTROL_BURST)))
    assert not frames.allows(Frame.OTHER, 0.0)
    assert frames.allows(Frame.PING, 0.0)
