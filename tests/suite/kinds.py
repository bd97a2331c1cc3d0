"""What kind of test stands where, and which modules run when the machine does nothing else. Paths begin in tests/.

What nothing here fits is `unit`: it opens no socket, starts no process and needs no Java, and a test that does so
anyway fails (`unit_guard.py`). It has to be named in `outside.txt` then: `module.py::test_x`, or its module or folder.
"""

from __future__ import annotations

import functools
from pathlib import Path, PurePosixPath

TESTS = Path(__file__).resolve().parent.parent

# Folders and modules whose kind has a name; kinds that last long come first, and a parallel run keeps this order.
NAMED = {
    "apache": (
        "interop",
        "peers",
        "dashboard/attached",
        "gantrymq/contrib/spark/test_apache.py",
    ),
    "fault": ("faults", "soak"),
    "e2e": ("e2e", "dashboard/overview/test_one_screen.py"),
    "spark": (
        "appliance/reports/with_spark",
        "appliance/reports/test_report_command.py",
        "appliance/reports/test_cluster.py",
        "gantrymq/contrib/spark/test_interpreter.py",
        "gantrymq/contrib/spark/test_with_spark.py",
    ),
    "packaging": ("deploy", "test_wheel.py", "test_checks.py"),
    "fuzz": ("fuzz",),
}

# Fixtures and parameters that make a test of that kind, whatever its module is.
FIXTURES = {"spark": "spark", "mqadmin": "apache", "cluster": "outside", "gateway": "outside", "peer": "outside"}
APACHE_PARAMETER = "apache"  # of tests that run against Gantry's brokers and Apache's

_LINES = Path(__file__).with_name("outside.txt").read_text("ascii").splitlines()
OUTSIDE = tuple(line for line in _LINES if line and line[0] != "#")

# They measure what the machine can do. They run last, one after another, and most cores wait: few belong here.
ALONE = ("faults/test_hostile.py", "bench/store/test_stalls.py")

# Their modules share servers that a process starts once and keeps: in one process they are started once in all.
TOGETHER = ("appliance/reports/with_spark", "dashboard/web", "gantrymq/client")

# They read the same code: in one process each file is parsed once.
READERS = (
    "test_floors.py",
    "test_forbidden_calls.py",
    "test_function_length.py",
    "test_private_state.py",
    "test_waiting.py",
    "dashboard/language/test_parity.py",
    "docs/test_security_list.py",
    "docs/test_words.py",
    "suite/test_skips.py",
)

ORDER = (*NAMED, "outside", "unit")

_KIND = {place: kind for kind, places in NAMED.items() for place in places} | dict.fromkeys(OUTSIDE, "outside")


@functools.cache
def kind_of(module: Path | str, test: str = "") -> str:
    """The kind of a test module, or of one function in it: one of ORDER."""
    places = (f"{_from_tests(module)}::{test}", *_places_of(module))
    return next((_KIND[place] for place in places if place in _KIND), "unit")


@functools.cache
def is_alone(module: Path | str) -> bool:
    """Whether the module runs when no other test does."""
    return any(place in ALONE for place in _places_of(module))


@functools.cache
def shared_folder(module: Path | str) -> str | None:
    """The folder of TOGETHER that the module is in. One with unit tests alone uses no server, so it is in none."""
    name = _from_tests(module)
    if kind_of(module) == "unit" and not any(line.startswith(f"{name}::") for line in OUTSIDE):
        return None
    return next((place for place in _places_of(module) if place in TOGETHER), None)


def is_reader(module: Path | str) -> bool:
    """Whether the module goes to the same worker as the others that read the project's code."""
    return _from_tests(module) in READERS


def _places_of(module: Path | str) -> tuple[str, ...]:
    """The module and the folders it stands in, the nearest first."""
    path = PurePosixPath(_from_tests(module))
    return (str(path), *map(str, path.parents))


def _from_tests(module: Path | str) -> str:
    return str(module).removeprefix(f"{TESTS}/").removeprefix("tests/")
