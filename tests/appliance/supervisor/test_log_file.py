"""A process's log file: rotated, continued, read from its end."""

from __future__ import annotations

from pathlib import Path

from appliance.supervisor.log_file import LogFile, tail


def test_a_full_log_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "worker.log"
    log = LogFile(path, bytes_max=10, kept=2)
    for text in (b"11111111\n", b"22222222\n", b"33333333\n", b"44444444\n"):
        log.write(text)
    log.close()
    assert path.read_bytes() == b"44444444\n"
    assert (tmp_path / "worker.log.1").read_bytes() == b"33333333\n"
    assert (tmp_path / "worker.log.2").read_bytes() == b"22222222\n"
    assert not (tmp_path / "worker.log.3").exists()


def test_a_log_is_continued_by_the_next_life_of_the_process(tmp_path: Path) -> None:
    for text in (b"one\n", b"two\n"):
        log = LogFile(tmp_path / "worker.log")
        log.write(text)
        log.close()
    assert tail(tmp_path / "worker.log") == "one\ntwo"
    assert tail(tmp_path / "worker.log", lines=1) == "two"


def test_a_log_that_does_not_exist_has_an_empty_tail(tmp_path: Path) -> None:
    assert tail(tmp_path / "nothing.log") == ""


def test_a_closed_log_holds_no_descriptor(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "worker.log")
    assert is_open_here(log.path)
    log.close()
    assert not is_open_here(log.path)


def is_open_here(path: Path) -> bool:
    return any(link.exists() and link.resolve() == path.resolve() for link in Path("/proc/self/fd").iterdir())
