"""The commands about accounts, against a broker that asks for them: as in test_mqadmin, with the tools of 4.9.7."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.accounts import ADMIN, accounts_at, launched
from tests.interop.conftest import PEER, make_cluster
from tests.interop.mqadmin.commands import Case, by_arguments
from tests.interop.mqadmin.differences import stale, unaccepted
from tests.interop.mqadmin.other_tools import GUARDED, REFUSED
from tests.interop.mqadmin.scene import Scene, addresses
from tests.interop.mqadmin.session import TOOLS_OF_THE_PEER, MqAdminSession
from tests.interop.mqadmin.shapes import ARE_WRITTEN, SHAPES, shape
from tests.interop.mqadmin.tool import MqAdmin

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, mqadmin: MqAdmin) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("mqadmin-guarded")
    accounts_at(home)
    peer = make_cluster(home, broker_properties={"aclEnable": "true"} | _home(str(home)))
    peer.broker_name = "admin-a"
    for running in launched(peer):
        with MqAdminSession(tmp_path_factory.mktemp("mqadmin-signing"), TOOLS_OF_THE_PEER) as session:
            yield Scene(session, addresses(running), {str(home): "<home>"})


def _home(folder: str) -> dict[str, str]:
    """Apache's broker has its home from the command line."""
    return {} if PEER == "apache" else {"rocketmqHome": folder}


@pytest.fixture(scope="module")
def answers(guarded: Scene) -> dict[str, str]:
    """What the commands printed, by their arguments: first without an account, then with the administrator's."""
    found = {case.arguments: guarded.answer(case) for case in REFUSED}
    guarded.session.sign_with(ADMIN.access_key, ADMIN.secret_key)
    found |= {case.arguments: guarded.answer(case) for case in GUARDED}
    if ARE_WRITTEN and PEER == "apache":
        SHAPES.write({f"guarded {name}": shape(text, guarded.names) for name, text in found.items()})
    return found


@pytest.mark.parametrize("case", (*REFUSED, *GUARDED), ids=by_arguments)
def test_a_command_prints_what_it_is_asked_for(case: Case, answers: dict[str, str], guarded: Scene) -> None:
    assert not guarded.missing(case, answers[case.arguments]), answers[case.arguments]


@pytest.mark.parametrize("case", (*REFUSED, *GUARDED), ids=by_arguments)
def test_a_command_prints_the_shape_that_it_prints_about_apaches_broker(
    case: Case, answers: dict[str, str], guarded: Scene
) -> None:
    name = f"guarded {case.arguments}"
    assert unaccepted(name, shape(answers[case.arguments], guarded.names), SHAPES.read()[name]) == []


@pytest.mark.skipif(PEER == "apache", reason="Apache's broker shows them")
def test_no_secret_is_printed(answers: dict[str, str]) -> None:
    shown = {name: text for name, text in answers.items() if name.startswith("getAclConfig")}
    assert shown
    assert not [name for name, text in shown.items() if "Secret" in text.replace("secretKey", "")]


@pytest.mark.skipif(PEER == "apache", reason="Apache's broker does not differ from itself")
def test_every_accepted_difference_is_there(answers: dict[str, str], guarded: Scene) -> None:
    ours = {f"guarded {command}": shape(text, guarded.names) for command, text in answers.items()}
    assert stale(ours, SHAPES.read()) == []
