"""What `import gantrymq` offers, and what it costs."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import gantrymq


def test_every_public_name_is_there() -> None:
    for name in gantrymq.__all__:
        assert getattr(gantrymq, name) is not None
        assert name in dir(gantrymq)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        gantrymq.Nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_that_costs() -> None:
    program = "import sys, gantrymq; print([m for m in ('asyncio', 'orjson', 'ssl', 'zlib') if m in sys.modules])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


def test_the_sdk_needs_no_package_but_orjson() -> None:
    program = (
        "import sys, gantrymq; [getattr(gantrymq, name) for name in gantrymq.__all__];"
        "known = sys.stdlib_module_names | {'gantrymq', 'orjson'};"
        "print(sorted({m.partition('.')[0] for m, v in sys.modules.items() if getattr(v, '__file__', None)} - known"
        " - {'__main__', '_virtualenv', 'sitecustomize', 'usercustomize', '__editable__'}))"
    )
    finished = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [
        name for name in ast.literal_eval(finished.stdout) if not name.startswith(("__editable__", "_distutils"))
    ] == []
