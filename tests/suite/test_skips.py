"""Nothing is skipped in CI: what may be missing goes through `missing`, which fails there; else it is written here."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import PACKAGES
from tests.suite.kinds import TESTS

# Conditions to skip by that never hold in CI: the peer is our broker there, on Debian.
CONDITIONS = {"PEER == 'apache'", "platform.libc_ver()[0] != 'glibc'"}
CALLS = {"pytest.skip", "pytest.mark.skip", "unittest.skip", "unittest.SkipTest", "self.skipTest"}
OURS = {"appliance.reports.results", "deploy.site_pages"}  # modules that import PACKAGES


def skips_of(node: ast.AST, condition: str = "") -> Iterator[str]:
    """What a module skips tests by: conditions, packages, or without one the call. condition: met at this node."""
    match node:
        case ast.FunctionDef(name="missing"):
            return
        case ast.If(test=test):
            condition = ast.unparse(test).rpartition(" and ")[2]
        case ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value=str(module)), *_]):
            yield module if module in OURS else module.partition(".")[0]
        case ast.Call(func=ast.Attribute(attr="skipif"), args=[test, *_]):
            yield ast.unparse(test)
        case ast.Attribute() if ast.unparse(node) in CALLS:
            yield condition or ast.unparse(node)
    for child in ast.iter_child_nodes(node):
        yield from skips_of(child, condition)


def test_what_tests_are_skipped_by_is_written_here() -> None:
    found = {
        f"{path.relative_to(TESTS)}: {skip}"
        for path in TESTS.rglob("*.py")
        if "skip" in (text := path.read_text(encoding="utf-8"))
        for skip in skips_of(ast.parse(text))
        if skip not in {*CONDITIONS, *OURS, *PACKAGES}
    }
    assert found == set(), "call missing() of tests/conftest.py"


@pytest.mark.parametrize(
    ("code", "skips"),
    [
        ("if os.geteuid() != 0:\n    pytest.skip('root')", ["os.geteuid() != 0"]),
        ("if acl and PEER == 'apache':\n    pytest.skip('-')", ["PEER == 'apache'"]),
        ("def test():\n    pytest.skip('-')", ["pytest.skip"]),
        ("@pytest.mark.skip\ndef test(): ...", ["pytest.mark.skip"]),
        ("@pytest.mark.skipif(a < b, reason='-')\ndef test(): ...", ["a < b"]),
        ("fs = pytest.importorskip('pyarrow.fs', reason='-')", ["pyarrow"]),
        ("missing('root', '-')", []),
    ],
)
def test_each_way_to_skip_is_seen(code: str, skips: list[str]) -> None:
    assert list(skips_of(ast.parse(code))) == skips
