"""Runs tests with the fast path built with AddressSanitizer and UBSan: `python -m tests.suite.sanitized tests/fuzz -x`.

The first wrong access to memory, or undefined behaviour, ends the run with a report of where it was. Arguments go to
pytest. Only what runs in the process of the tests itself is looked at closely: give it no tests that start Java.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from appliance.fast_path.artifact import of_this_checkout
from appliance.fast_path.build import build
from appliance.fast_path.toolchain import Toolchain
from gantrymq.errors import GantryError

ROOT = Path(__file__).resolve().parents[2]
TEST_LIMIT_S = 4 * 3600  # of one test: an hour of fuzzing is one, and all takes a few times as long as otherwise


class NoSanitizer(GantryError):
    """The compiler has no AddressSanitizer to load."""


def environment() -> dict[str, str]:
    """What a process needs to run the sanitized build; compiles it first. Raises Missing, CompileError, NoSanitizer."""
    build(of_this_checkout(sanitize=True))
    command = [*Toolchain.find().compiler, "-print-file-name=libasan.so"]
    library = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    if not library.is_absolute():  # the name alone: it was not found
        raise NoSanitizer(f"{command[0]} has no libasan.so (Debian: sudo apt-get install gcc)")
    return {
        "LD_PRELOAD": str(library.resolve()),  # before all else, or it refuses to work
        "PYTHONMALLOC": "malloc",  # so that each object is a piece of memory with edges of its own
        # Python keeps memory until it ends. Instead of a huge piece there is none, as without the sanitizer.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "GANTRY_TEST_FAST_PATH": "sanitize",
    }


def run(arguments: Sequence[str], *, timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """pytest with these arguments, one process, what it prints in `stdout`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GANTRY_TEST_"))}
    options = ["-p", "no:cacheprovider", "-n", "0", "--timeout", str(TEST_LIMIT_S)]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=own | environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=timeout_s, check=False,
    )  # fmt: skip


if __name__ == "__main__":
    done = run(sys.argv[1:])
    print(done.stdout, end="")
    sys.exit(done.returncode)
