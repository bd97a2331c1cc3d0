"""What a process prints: to its log, whatever becomes of the disk, and the READY line caught on its way."""

from __future__ import annotations

from pathlib import Path

from appliance.supervisor.child_output import ChildOutput


def test_a_ready_line_may_come_in_pieces(tmp_path: Path) -> None:
    output = ChildOutput(tmp_path / "log")
    for piece in (b"a line\nREA", b'DY {"role": "bro', b'ker"}', b"\nREADY not this one\n"):
        output.take(piece)
    assert output.ready_line == '{"role": "broker"}'
    assert (tmp_path / "log").read_bytes() == b'a line\nREADY {"role": "broker"}\nREADY not this one\n'


def test_progress_counts_until_the_process_is_ready(tmp_path: Path) -> None:
    output = ChildOutput(tmp_path / "log")
    output.take(b"INFO  store recovering  event=store_recovering percent=20\n")
    assert (output.percent, output.progress_lines) == ("20", 1)
    output.begin_life()
    assert (output.percent, output.progress_lines, output.ready_line) == ("", 0, None)


def test_a_log_that_can_t_be_written_stops_nobody_and_says_later_how_much_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.write_text("a file stands where the folder should be")
    output = ChildOutput(folder / "broker.log")
    output.take(b"lost\n")
    folder.unlink()
    output.take(b"READY {}\n")
    assert output.ready_line == "{}"
    assert (folder / "broker.log").read_text().splitlines() == [
        "(5 bytes of the log could not be written here)",
        "READY {}",
    ]
