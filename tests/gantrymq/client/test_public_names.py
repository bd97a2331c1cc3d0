"""What `import gantrymq` offers, and what it costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

import gantrymq
from tests.source_files import ROOT, sources, syntax_of


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


def test_importing_the_package_leaves_typing_to_type_checkers() -> None:
    program = "import sys; before = set(sys.modules); import gantrymq; print('typing' in set(sys.modules) - before)"
    assert _printed(program) == "False"


def test_importing_the_clients_loads_nothing_that_only_some_programs_need() -> None:
    """By name, not by time: asyncio brings ssl, subprocess and logging, orjson brings json and uuid; these come on top.

    A header may be a decimal, an account needs a hash, files of offsets and certificates need paths: then they are.
    """
    late = ["decimal", "hashlib", "hmac", "http", "ipaddress", "multiprocessing", "pathlib", "secrets", "urllib"]
    clients = [name for name in gantrymq.__all__ if name.endswith(("Producer", "Consumer", "AdminClient"))]
    program = f"import sys, gantrymq; [getattr(gantrymq, name) for name in {[*clients, 'Message', 'TlsConfig']}];"
    program += f"print([name for name in {late} if name in sys.modules])"
    assert _printed(program) == "[]"


def test_producers_import_no_consumers_and_consumers_no_producer_of_threads() -> None:
    """By name, not by time: what only sends starts without the parts that receive."""
    senders = ["Producer", "SyncProducer", "TransactionProducer", "SyncTransactionProducer"]
    program = f"import sys, gantrymq; [getattr(gantrymq, name) for name in {senders}];"
    program += "print([name for name in sys.modules if 'consum' in name or name.endswith('admin')])"
    assert _printed(program) == "[]"
    program = (
        "import sys, gantrymq; gantrymq.SyncPushConsumer; print('gantrymq.client.blocking.producer' in sys.modules)"
    )
    assert _printed(program) == "False"


def test_producers_and_consumers_do_without_the_bodies_of_tools() -> None:
    program = "import sys, gantrymq; gantrymq.Producer, gantrymq.SyncProducer, gantrymq.PushConsumer;"
    program += "print('gantrymq.remoting.admin_bodies' in sys.modules)"
    assert _printed(program) == "False"


def _printed(program: str) -> str:
    """Without `site`, whose .pth files may import anything."""
    paths = [str(ROOT), *(path for path in sys.path if "packages" in path)]
    program = f"import sys; sys.path[:0] = {paths}; {program}"
    finished = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert finished.stderr == ""
    return finished.stdout.strip()


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


def untyped(tree: ast.Module) -> Iterator[str]:
    """Public variables of modules and public attributes of objects whose type only inference would tell.

    Type checkers infer differently, so `pyright --verifytypes` counts such a name as unknown.
    """
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            yield from (name for name in map(ast.unparse, statement.targets) if name == "logger")
    for kind in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]:
        seen: set[str] = {f"self.{ast.unparse(node.target)}" for node in kind.body if isinstance(node, ast.AnnAssign)}
        assignments = [node for node in ast.walk(kind) if isinstance(node, ast.Assign | ast.AnnAssign)]
        for node in sorted(assignments, key=lambda each: each.lineno):
            for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
                name = ast.unparse(target)
                if not re.fullmatch(r"self\.[a-z]\w*", name) or name in seen:
                    continue
                seen.add(name)
                if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant | ast.Name):
                    yield f"{kind.name}.{name.removeprefix('self.')}"


def test_every_public_attribute_says_its_type() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources()
        if path.is_relative_to(ROOT / "gantrymq")
        for name in untyped(syntax_of(path))
    }
    assert found == set(), "write `self.name: Type = …`"


def test_the_search_for_types_finds_what_it_looks_for() -> None:
    code = (
        "logger = logging.getLogger(__name__)\nclass A:\n def __init__(self, a: int):\n  self.a = a\n  self.b = f(a)\n"
    )
    assert list(untyped(ast.parse(code))) == ["logger", "A.b"]
