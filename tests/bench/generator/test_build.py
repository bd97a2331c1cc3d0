"""The program is compiled once, and what is missing for that is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.bench.generator.build import generator_program
from appliance.bench.maven import ToolError
from appliance.cli import bench
from tests.conftest import require_tool


def test_it_is_compiled_once_for_each_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("cc", "the load generator is a C program")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = generator_program()
    assert tmp_path in program.parents
    before = program.stat()
    assert generator_program() == program and program.stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in program.parent.parent.iterdir()] == [program.parent.name], "nothing is left behind"


def test_without_a_compiler_the_bench_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="cc is missing: the load generator is a C program"):
        bench.load_generator()


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho stdio.h: no such file >&2\nexit 1\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(ToolError, match=r"stdio\.h: no such file"):
        generator_program()
