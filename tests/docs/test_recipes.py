"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the checkout: what they promise happens."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COPIED = ("appliance", "dashboard", "gantrymq", "store", "tests", "docs", "templates", "manage.py", "pyproject.toml")
# What a worker beside this one compiles has such a name for a moment, and is gone when it is to be copied: x.pyc.1234
LEFT_OUT = shutil.ignore_patterns("*pytest*.pyc", "*.pyc.*", "golden", "node_modules", "target", "results")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the code that a recipe may change."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=LEFT_OUT)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def add_line(path: Path, behind: str, line: str) -> None:
    """Insert a line behind the first one that holds `behind`."""
    text = path.read_text(encoding="utf-8")
    place = text.index("\n", text.index(behind)) + 1
    path.write_text(text[:place] + line + "\n" + text[place:], encoding="utf-8")


def run(checkout: Path, *arguments: str, **environment: str) -> str:
    """What a Python command prints in the copy."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_new_command(checkout: Path) -> None:
    program = '''
"""Greet somebody."""
def add_arguments(parser):
    parser.add_argument("name")
def run(arguments):
    print("hello", arguments.name)
    return 0
'''
    (checkout / "appliance/cli/greet_them.py").write_text(program)
    add_line(checkout / "appliance/cli/commands.py", "COMMANDS = {", '    "greet-them": "greet somebody",')
    assert run(checkout, "-m", "appliance", "greet-them", "Ada") == "hello Ada\n"
    assert "greet somebody" in run(checkout, "-m", "appliance", "--help")


def test_a_new_setting_of_a_broker(checkout: Path) -> None:
    line = '    tea_time_ms: int = setting(7, "teaTime", "milliseconds until tea")'
    add_line(checkout / "appliance/settings/roles.py", '"brokerName"', line)
    (checkout / "broker.properties").write_text("teaTime=12\n")
    program = (
        "from pathlib import Path; from appliance.settings.loader import load_broker_config;"
        "config, store, ignored = load_broker_config(Path('broker.properties')); print(config.tea_time_ms, ignored)"
    )
    assert run(checkout, "-c", program) == "12 []\n"
    run(checkout, "-m", "tests.docs.settings_page")
    assert "| `teaTime` | `7` |" in (checkout / "docs/settings.md").read_text()


def test_a_new_setting_of_the_appliance(checkout: Path) -> None:
    line = '    tea_pots: int = option(2, "how many pots stand ready")'
    add_line(checkout / "appliance/settings/appliance_config.py", "    data: Path = option(", line)
    program = "from appliance.settings.appliance_config import ApplianceConfig as C; print(C.load().tea_pots)"
    assert run(checkout, "-c", program) == "2\n"
    assert run(checkout, "-c", program, GANTRY_TEA_POTS="5") == "5\n"
    (checkout / "gantry.toml").write_text("tea_pots = 3\n")
    assert run(checkout, "-c", program) == "3\n"
    run(checkout, "-m", "tests.docs.settings_page")
    assert "tea_pots" in (checkout / "docs/settings.md").read_text()


@pytest.mark.parametrize("module", sorted(set(re.findall(r"python -m ([\w.]+)", CONTRIBUTING))))
def test_a_module_that_the_recipes_run_is_there(module: str) -> None:
    path = ROOT.joinpath(*module.split("."))
    assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


@pytest.mark.parametrize(
    ("name", "path"), sorted(set(re.findall(r"`([A-Z][A-Z_]{3,})`\s(?:of|in)\s`([\w/]+\.py)`", CONTRIBUTING)))
)
def test_a_table_that_the_recipes_name_stands_in_that_file(name: str, path: str) -> None:
    assert re.search(rf"^{name}\b.*=", (ROOT / path).read_text(encoding="utf-8"), re.M), f"{name} is not in {path}"


def test_a_new_page(checkout: Path) -> None:
    view = """
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.access.permissions import Permission, requires


@requires(Permission.CONFIG_READ)
async def tea(request: HttpRequest) -> HttpResponse:
    return render(request, "tea/tea.html", {"pots": 3})
"""
    template = '{% extends "base.html" %}{% block content %}<h1>Tea</h1><p>{{ pots }} pots</p>{% endblock %}'
    tests = """
from tests.dashboard.conftest import Client


async def test_it_works(log_in: Client) -> None:
    assert b"3 pots" in (await (await log_in("admin")).get("/tea")).content


async def test_it_refuses_the_wrong_role(log_in: Client) -> None:
    assert (await (await log_in("reader")).get("/tea")).status_code == 403
"""
    (checkout / "dashboard/tea").mkdir()
    (checkout / "dashboard/tea/__init__.py").write_text("")
    (checkout / "dashboard/tea/views.py").write_text(view)
    (checkout / "templates/tea").mkdir()
    (checkout / "templates/tea/tea.html").write_text(template)
    (checkout / "tests/dashboard/tea").mkdir()
    (checkout / "tests/dashboard/tea/__init__.py").write_text("")
    (checkout / "tests/dashboard/tea/test_tea.py").write_text(tests)
    add_line(checkout / "dashboard/urls.py", "urlpatterns: list", '    path("tea", tea.tea, name="tea"),')
    add_line(checkout / "dashboard/urls.py", "from django.urls import", "from dashboard.tea import views as tea")
    done = run(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/dashboard/tea/test_tea.py")
    assert "2 passed" in done


def test_a_new_verb_of_gantry_admin(checkout: Path) -> None:
    module = checkout / "appliance/cli/admin/topics.py"
    add_line(module, '    "topics": {', '        "count": Command("how many topics there are", count_topics),')
    act = 'async def count_topics(admin, arguments):\n    return Shown({"topics": 3}, ["3 topics"])\n\n\nCOMMANDS = {'
    module.write_text(module.read_text().replace("COMMANDS = {", act, 1))
    assert "how many topics there are" in run(checkout, "-m", "appliance", "admin", "topics", "--help")
    assert "How many topics there are." in run(checkout, "-m", "appliance", "admin", "topics", "count", "--help")
    told = run(checkout, "-m", "appliance", "admin", "topics", "count", "--json", "-n", "127.0.0.1:1")
    assert json.loads(told) == {"topics": 3}


def test_a_new_request_code(checkout: Path) -> None:
    handler = """

def count_topics(parts: AdminTopicParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    return request.reply(body=str(len(parts.topics.system_topics)).encode())
"""
    tests = """
from pathlib import Path

from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.harness import serving


async def test_it_counts(tmp_path: Path) -> None:
    client = RemotingClient()
    async with serving(tmp_path) as cluster:
        request = RemotingCommand.request(RequestCode.COUNT_TOPICS)
        assert int((await client.invoke(cluster.broker_address, request, timeout_s=60)).body) > 3
        await client.close()
"""
    folder = checkout / "appliance/broker/processors"
    module = folder / "admin_topics.py"
    module.write_text(module.read_text() + handler)
    add_line(checkout / "gantrymq/remoting/codes.py", "GET_BROKER_CLUSTER_ACL_CONFIG = 54", "    COUNT_TOPICS = 7777")
    row = '    Row(Code.COUNT_TOPICS, admin_topics.count_topics, "admin"),'
    last = [line for line in (folder / "table.py").read_text().splitlines() if line.startswith("    Row(")][-1]
    add_line(folder / "table.py", last, row)
    permission = "    RequestCode.COUNT_TOPICS: ADMIN,"
    add_line(
        checkout / "appliance/acl/permission_table.py", "RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: ADMIN", permission
    )
    (checkout / "tests/appliance/broker/processors/test_count.py").write_text(tests)
    with (checkout / "tests/suite/outside.txt").open("a") as outside:
        outside.write("appliance/broker/processors/test_count.py\n")
    done = run(
        checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/appliance/broker/processors/test_count.py"
    )
    assert "1 passed" in done
    run(checkout, "-m", "tests.docs.compatibility_page")
    assert "| 7777 |" in (checkout / "docs/compatibility.md").read_text()
