"""Who is asked for the stacks of its threads, and who is left alone."""

from __future__ import annotations

import os
import subprocess

from appliance.process.thread_stacks import ask_for_stacks


def test_another_program_that_catches_the_signal_is_not_sent_it() -> None:
    """A JVM does, and ends of it: a bundle that was made during a report ended the report."""
    with subprocess.Popen(
        ["/bin/sh", "-c", "trap 'exit 7' USR2; echo ready; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        assert not ask_for_stacks(other.pid, os.getpid())
        other.stdin.close()
        assert other.wait() == 1, "the end of its input ended it"


def test_a_process_that_does_not_know_the_signal_is_not_sent_it() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert not ask_for_stacks(other.pid, other.pid)
        other.stdin.close()
        assert other.wait() == 0
