"""Every sub-command of RocketMQ's own command line runs against us, and prints what it prints about Apache's broker.

The table is in mqadmin_commands.py. The shape of what Apache RocketMQ 4.9.7 answers is in mqadmin_shapes.txt; with
GANTRY_INTEROP_PEER=apache its own broker is asked instead of ours, and with GANTRY_WRITE_SHAPES=1 the file is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import time_limit
from tests.interop.clients import JavaClient
from tests.interop.conftest import PEER, make_cluster
from tests.interop.mqadmin import MqAdmin
from tests.interop.mqadmin_commands import COMMANDS, Case
from tests.interop.mqadmin_differences import DIFFERENCES
from tests.interop.mqadmin_scene import Scene, scene
from tests.interop.mqadmin_session import UNLISTED, MqAdminSession
from tests.interop.mqadmin_shapes import ShapeFile, shape

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SHAPES = ShapeFile(Path(__file__).with_name("mqadmin_shapes.txt"))
ARE_WRITTEN = os.environ.get("GANTRY_WRITE_SHAPES") == "1"
ANSWERS_NOTHING_NEW = 60.0  # seconds for the first round of startMonitoring, which comes after twenty


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
            yield ready


@pytest.fixture(scope="module")
def answers(prepared: Scene) -> dict[str, str]:
    """What each command of the table printed, by its arguments: they run in the table's order."""
    found = {case.arguments: prepared.run(case) for case in COMMANDS}
    if ARE_WRITTEN and PEER == "apache":
        SHAPES.write({arguments: shape(text, prepared.names) for arguments, text in found.items()})
    return found


def by_arguments(case: Case) -> str:
    return case.arguments


@pytest.mark.parametrize("case", COMMANDS, ids=by_arguments)
def test_a_command_prints_what_it_is_asked_for(case: Case, answers: dict[str, str], prepared: Scene) -> None:
    text = answers[case.arguments]
    missing = [pattern for pattern in case.shows if not re.search(prepared.pattern(pattern), text, re.MULTILINE)]
    assert not missing, text


@pytest.mark.parametrize("case", COMMANDS, ids=by_arguments)
def test_a_command_prints_the_shape_that_it_prints_about_apaches_broker(
    case: Case, answers: dict[str, str], prepared: Scene
) -> None:
    ours, theirs = set(shape(answers[case.arguments], prepared.names)), set(SHAPES.read()[case.arguments])
    accepted = [difference for difference in DIFFERENCES if re.search(difference.commands, case.arguments)]
    patterns = {
        "only ours": [difference.ours for difference in accepted if difference.ours],
        "only theirs": [difference.theirs for difference in accepted if difference.theirs],
    }
    lines = {"only ours": ours - theirs, "only theirs": theirs - ours}
    left = {
        side: sorted(line for line in lines[side] if not any(re.search(pattern, line) for pattern in patterns[side]))
        for side in lines
    }
    assert left == {"only ours": [], "only theirs": []}


@pytest.mark.skipif(PEER == "apache", reason="Apache's broker does not differ from itself")
def test_every_accepted_difference_is_there(answers: dict[str, str], prepared: Scene) -> None:
    expected = SHAPES.read()
    ours = [(case, shape(answers[case], prepared.names)) for case in answers]
    for difference in DIFFERENCES:
        for pattern, found in ((difference.ours, ours), (difference.theirs, list(expected.items()))):
            lines = [line for case, shown in found if re.search(difference.commands, case) for line in shown]
            assert not pattern or any(re.search(pattern, line) for line in lines), difference


def test_the_table_has_every_command_that_mqadmin_lists(session: MqAdminSession) -> None:
    listed = re.findall(r"^   (\w+) ", session.run().text, re.MULTILINE)
    listed += [name for name in ("getConsumerStatus", "resetOffsetByTimeOld", "consumer") if name not in listed]
    guarded = {"updateAclConfig", "deleteAclConfig", "clusterAclConfigVersion", "updateGlobalWhiteAddr"}
    assert len(listed) >= 56
    assert set(listed) - {case.command for case in COMMANDS} - guarded == {"startMonitoring"}


def test_monitoring_goes_round(prepared: Scene, answers: dict[str, str]) -> None:
    prepared.session.wait_for_log("Execute one round monitor work", time_limit(ANSWERS_NOTHING_NEW))
