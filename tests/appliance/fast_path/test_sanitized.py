"""The fast path with AddressSanitizer and UBSan: they see what is wrong, and find nothing in the tests of the twin.

By hand, for an hour: `python -m tests.suite.sanitized tests/fuzz/test_fast_path.py --fuzz-seconds 3600`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from appliance.fast_path.artifact import SANITIZER_FLAGS, Artifact
from appliance.fast_path.toolchain import Missing
from appliance.own_files import ROOT
from tests.appliance.fast_path.compiling import build_or_skip
from tests.conftest import missing
from tests.suite import sanitized

pytestmark = pytest.mark.timeout(1800)  # compiling the twin twice, on a machine that others use too

FAULTY = """
# cython: language_level=3

def write_at(bytearray room, int place):
    (<char*> room)[place] = 1

def read_at(bytes text, int place):
    return (<const unsigned char*> text)[place]

def next_number(int number):
    return number + <int> 1
"""
LOAD = """
import sys
from pathlib import Path
from appliance.fast_path.artifact import Artifact, SANITIZER_FLAGS
from appliance.fast_path.loader import load_artifact
module, why = load_artifact(Artifact(Path(sys.argv[1]), Path(sys.argv[2]), SANITIZER_FLAGS))
assert module is not None, why
print(eval(sys.argv[3], {"module": module}))
"""
TESTS = [
    *(
        f"tests/appliance/fast_path/test_{name}.py"
        for name in ("crc32", "same_as_python", "log_file", "pulls_same", "signed_sends", "copies_same")
    ),
    "tests/appliance/fast_path/reader/test_fast_reader.py",
]
FUZZ = "tests/fuzz/test_fast_path.py"
FUZZ_SECONDS = 10  # at least; what a seed makes is finished


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    try:
        return sanitized.environment()
    except (Missing, sanitized.NoSanitizer) as exc:
        missing("AddressSanitizer", str(exc))
        raise


@pytest.fixture(scope="module")
def faulty(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "compiled.pyx").write_text(FAULTY)
    artifact = Artifact(folder, folder / "builds", SANITIZER_FLAGS)
    build_or_skip(artifact)
    return artifact


def run_faulty(faulty: Artifact, environment: dict[str, str], call: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LOAD, str(faulty.sources), str(faulty.builds), call]
    whole = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=whole, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("call", "report"),
    [
        ("module.write_at(bytearray(8), 9)", "heap-buffer-overflow"),
        ("module.read_at(b'four', 5)", "heap-buffer-overflow"),
        ("module.read_at(b'four', -40)", "heap-buffer-overflow"),
        ("module.next_number((1 << 31) - 1)", "signed integer overflow"),
    ],
)
def test_a_fault_ends_the_process_with_a_report(
    faulty: Artifact, environment: dict[str, str], call: str, report: str
) -> None:
    done = run_faulty(faulty, environment, call)
    assert done.returncode != 0
    assert report in done.stderr


def test_what_is_right_is_left_alone(faulty: Artifact, environment: dict[str, str]) -> None:
    done = run_faulty(faulty, environment, "module.next_number(7), module.read_at(b'four', 4)")
    assert (done.returncode, done.stdout) == (0, "(8, 0)\n"), done.stderr


def test_the_tests_of_the_twin_and_made_up_bytes_find_no_fault(environment: dict[str, str]) -> None:
    """In one process: its start takes as long as many tests."""
    done = sanitized.run([*TESTS, FUZZ, "-q", "-x", "--fuzz-seconds", str(FUZZ_SECONDS)])
    assert done.returncode == 0, done.stdout[-20_000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout
