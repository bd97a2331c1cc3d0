"""keep_freed_memory: what was freed is used again without the kernel. In a process of its own: it holds for good."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
from appliance.heap import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt

def work():
    parts = [b"x" * 131_000 for _ in range(16)]  # 2 MiB, as the units of a second are

assert keep_freed_memory()
work(); work()
before = faults()
for _ in range(10):
    work()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives the heap's end back so eagerly")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64, "2 MiB ten times over: 5000 page faults when each round gets it from the kernel"
