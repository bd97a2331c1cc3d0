"""Every sub-command of RocketMQ's own command line runs against us, and prints what it prints about Apache's broker.

The table is in commands.py. The shape of what Apache RocketMQ 4.9.7 answers is in shapes.txt; with
GANTRY_INTEROP_PEER=apache its own broker is asked instead of ours, and with GANTRY_WRITE_SHAPES=1 the file is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.clients import JavaClient
from tests.interop.conftest import PEER, make_cluster
from tests.interop.mqadmin.commands import CLEANING, COMMANDS, RESETS, Case, by_arguments
from tests.interop.mqadmin.differences import stale, unaccepted
from tests.interop.mqadmin.other_tools import FIVE, FIVE_LAST, GUARDED
from tests.interop.mqadmin.scene import Scene, scene, wait_for_monitoring
from tests.interop.mqadmin.session import TOOLS_FIVE, UNLISTED, UNLISTED_NAMES, MqAdminSession
from tests.interop.mqadmin.shapes import ARE_WRITTEN, SHAPES, ShapeFile, shape
from tests.interop.mqadmin.tool import MqAdmin
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.slow

FOUR = (*COMMANDS, *RESETS, *CLEANING)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, mqadmin: MqAdmin) -> Iterator[MqAdminSession]:
    """One virtual machine for all commands; `mqadmin` skips aloud without Java."""
    with MqAdminSession(tmp_path_factory.mktemp("mqadmin-session"), unlisted=UNLISTED) as running:
        yield running


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, java: JavaClient, session: MqAdminSession) -> Iterator[Scene]:
    peer = make_cluster(tmp_path_factory.mktemp("mqadmin-cluster"), broker_properties={"traceTopicEnable": "true"})
    peer.broker_name = "admin-a"  # of both makes, for it stands in many tables
    with peer:
        session.run("startMonitoring", "-n", peer.namesrv_address)  # goes on in the background
        with scene(peer, java, session, tmp_path_factory.mktemp("exports")) as ready:
            ready.names[str(peer.home)] = "<home>"
            wait_for_monitoring(peer)
            yield ready


class Answers(NamedTuple):
    """What each command printed, by its arguments: those of 4.9 and those of RocketMQ 5."""

    four: dict[str, str]
    five: dict[str, str]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, prepared: Scene) -> Answers:
    """The tables, in their order. RocketMQ 5's tools do not ask Apache's 4.9 broker: it refuses much of it."""
    found = Answers({}, {})
    with MqAdminSession(tmp_path_factory.mktemp("mqadmin-five"), TOOLS_FIVE) as session:
        five = Scene(session, prepared.values, prepared.names)
        for four_cases, five_cases in ((COMMANDS, FIVE), (RESETS, FIVE_LAST), (CLEANING, ())):
            found.four.update({case.arguments: prepared.answer(case) for case in four_cases})
            if PEER != "apache":
                found.five.update({case.arguments: five.answer(case) for case in five_cases})
    if ARE_WRITTEN and PEER == "apache":
        SHAPES.write({arguments: shape(text, prepared.names) for arguments, text in found.four.items()})
    return found


@pytest.mark.parametrize("case", FOUR, ids=by_arguments)
def test_a_command_prints_what_it_is_asked_for(case: Case, answers: Answers, prepared: Scene) -> None:
    assert not prepared.missing(case, answers.four[case.arguments]), answers.four[case.arguments]


@pytest.mark.parametrize("case", FOUR, ids=by_arguments)
def test_a_command_prints_the_shape_that_it_prints_about_apaches_broker(
    case: Case, answers: Answers, prepared: Scene
) -> None:
    ours, theirs = shape(answers.four[case.arguments], prepared.names), SHAPES.read()[case.arguments]
    assert unaccepted(case.arguments, ours, theirs) == []


@pytest.mark.skipif(PEER == "apache", reason="Apache's broker does not differ from itself")
def test_every_accepted_difference_is_there(answers: Answers, prepared: Scene) -> None:
    ours = {command: shape(text, prepared.names) for command, text in answers.four.items()}
    assert stale(ours, SHAPES.read()) == []


def test_the_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    written = tmp_path / "shapes.txt"
    ShapeFile(written).write(SHAPES.read())
    assert ShapeFile(written).read() == SHAPES.read()
    assert written.read_bytes() == SHAPES.path.read_bytes()


def test_the_table_has_every_command_that_mqadmin_lists(session: MqAdminSession) -> None:
    listed = re.findall(r"^   (\w+) ", session.run().text, re.MULTILINE)
    assert set(UNLISTED_NAMES) < set(listed)
    assert len(listed) == 56 + len(UNLISTED_NAMES)
    assert set(listed) - {case.command for case in (*FOUR, *GUARDED)} == {"startMonitoring"}


@pytest.mark.skipif(PEER == "apache", reason="a 4.9 broker refuses many of them")
@pytest.mark.parametrize("case", (*FIVE, *FIVE_LAST), ids=by_arguments)
def test_rocketmq_fives_tools_print_what_they_are_asked_for(case: Case, answers: Answers, prepared: Scene) -> None:
    assert not prepared.missing(case, answers.five[case.arguments]), answers.five[case.arguments]


def test_monitoring_goes_round(prepared: Scene, answers: Answers) -> None:
    prepared.session.wait_for_log("Execute one round monitor work", WITHIN_S)  # it begins after twenty seconds
