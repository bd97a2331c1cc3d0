"""What could make code or commands of what somebody sent has no place in what is shipped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.source_files import ROOT, dotted, sources, syntax_of

MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "pty", "telnetlib"}
CALLS = {
    "eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell", "tempfile.mktemp",
}  # fmt: skip
# a broker for the tests of applications, a consumer that is started anew: no client imports them
STARTERS = ("gantrymq/testing", "gantrymq/runner")
SERVERS = ("appliance/broker", "appliance/namesrv", "appliance/remoting", "appliance/acl", "store", "gantrymq")


def findings(tree: ast.Module, *, serves: bool = False) -> Iterator[str]:
    """Each forbidden thing with its line. serves: what serves clients starts no process at all."""
    modules = MODULES | ({"subprocess", "multiprocessing"} if serves else set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"{node.lineno}: import {name}" for name in names if name.split(".")[0] in modules)
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in CALLS or (serves and "create_subprocess" in name):
                yield f"{node.lineno}: {name}"
            yield from (
                f"{node.lineno}: shell=True"
                for keyword in node.keywords
                if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
            )


def test_s24_nothing_that_is_shipped_makes_code_or_commands_of_data() -> None:
    """S24, S42."""
    shipped = sources()
    assert len(shipped) > 200
    found = []
    for path in shipped:
        name = path.relative_to(ROOT).as_posix()
        lines = findings(syntax_of(path), serves=name.startswith(SERVERS) and not name.startswith(STARTERS))
        found += [f"{name}:{line}" for line in lines]
    assert found == []


def test_every_limit_on_a_wait_works_in_a_cancelled_task_too() -> None:
    """gantrymq/timeouts.py says what asyncio's own do wrong in some Pythons."""
    refused = {"asyncio.timeout", "asyncio.timeout_at", "asyncio.wait_for"}
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for path in sources()
        if "asyncio.timeout" in (source := path.read_text(encoding="utf-8")) or "asyncio.wait_for" in source
        for node in ast.walk(syntax_of(path))
        if isinstance(node, ast.Call) and dotted(node.func) in refused
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from pickle import loads", "eval(x)", "os.system(x)", "yaml.load(x)",
        "subprocess.run(x, shell=True)", "subprocess.run(x, shell=flag)",
    ],
)  # fmt: skip
def test_the_search_finds_what_it_looks_for(source: str) -> None:
    assert list(findings(ast.parse(source)))


def test_what_serves_clients_starts_no_process() -> None:
    """S31, S42."""
    assert list(findings(ast.parse("import subprocess"), serves=True))
    assert list(findings(ast.parse("asyncio.create_subprocess_exec(x)"), serves=True))
    assert not list(findings(ast.parse("subprocess.run([x])")))


def test_a_signature_is_compared_in_constant_time() -> None:
    """S38. `==` ends at the first difference, and so tells how much of a guess is right."""
    source = (ROOT / "appliance/acl/signature_check.py").read_text(encoding="utf-8")
    compared = [ast.unparse(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare)]
    assert [text for text in compared if "given" in text and ("==" in text or "!=" in text)] == []
    assert "hmac.compare_digest(" in source
