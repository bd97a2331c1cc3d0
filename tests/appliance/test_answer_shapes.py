"""Right answers of our broker beside those of a real 4.9.4 broker: the same fields, members and kinds of values."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.answer_shapes import ext_names, paths
from tests.appliance.code_examples import BROKER, Example
from tests.appliance.code_scene import Scene, ask_all

pytestmark = pytest.mark.asyncio(loop_scope="module")

FRAMES = Path(__file__).parents[1] / "golden" / "frames" / "broker_answers.jsonl.gz"

# What we say beyond the original: see docs of each.
MORE = {
    RequestCode.GET_CONSUME_STATS: {
        f".offsetTable.*.{name}" for name in ("lagMs", "pullOffset", "doneAhead", "oldestLeaseMs")
    },
    RequestCode.GET_BROKER_CONSUME_STATS: {
        ".consumeStatsList[].*[].offsetTable.*.lagMs",
        ".consumeStatsList[].*[].offsetTable.*.pullOffset",
        ".consumeStatsList[].*[].offsetTable.*.doneAhead",
        ".consumeStatsList[].*[].offsetTable.*.oldestLeaseMs",
    },
}

MORE_NAMES = {
    RequestCode.GET_BROKER_CONFIG: {"keysInFile", "keysChanged"},  # where settings come from
    RequestCode.HEART_BEAT: {"timerMaxDelaySec"},  # this broker keeps delays to the millisecond
}


def captured() -> dict[int, list[RemotingCommand]]:
    answers: dict[int, list[RemotingCommand]] = defaultdict(list)
    for line in gzip.decompress(FRAMES.read_bytes()).splitlines():
        row = json.loads(line)
        answer = RemotingCommand.decode(bytes.fromhex(row["answer"])[4:])
        if answer.code == 0:
            answers[row["code"]].append(answer)
    return answers


CAPTURED = captured()
# A consumer's own words are passed on unread; delay offsets come with the first delivery (test_schedule looks at them).
ELSEWHERE = {
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.GET_ALL_DELAY_OFFSET,
}
ROWS = [row for row in BROKER if row.answers[0] == 0 and int(row.code) in CAPTURED and row.code not in ELSEWHERE]


@pytest.mark.parametrize("example", ROWS, ids=[f"{int(row.code)}" for row in ROWS])
async def test_a_right_answer_has_the_originals_shape(scene: Scene, example: Example) -> None:
    async with scene.peer(example) as peer:
        await scene.prepare(peer)
        ((_, ours),) = await ask_all(peer, [scene.request(example)])
    assert ours.code == 0, ours.remark
    theirs = CAPTURED[int(example.code)]
    own = MORE_NAMES.get(RequestCode(example.code), set())
    assert [name for name in ext_names(ours) if name not in own] in [ext_names(answer) for answer in theirs]
    assert bool(ours.body) in [bool(answer.body) for answer in theirs]
    known: dict[str, set[str]] = defaultdict(set)
    for answer in theirs:
        for path, kinds in paths(answer.body).items():
            known[path] |= kinds
    found = paths(ours.body)
    always = set.intersection(*(set(paths(answer.body)) for answer in theirs))
    reached = {path for path in always if path.rpartition(".")[0].removesuffix("[]") in found or path == ""}
    missing = {path for path in reached if path not in found and not _is_empty_here(path, found)}
    assert not missing, f"{sorted(missing)} are missing"
    strange = set(found) - set(known) - MORE.get(RequestCode(example.code), set())
    assert not strange, f"{sorted(strange)} the original does not say"
    other = {path: kinds for path, kinds in found.items() if path in known and not kinds <= known[path]}
    assert not other, f"{other} where the original has {[known[path] for path in other]}"


def _is_empty_here(path: str, found: dict[str, set[str]]) -> bool:
    """Whether the path leads through a map or a list that is empty in our answer."""
    while path:
        path, _, last = path.rpartition(".")
        if (path + ".*" not in found and last == "*") or (last.endswith("[]") and f"{path}.{last}" not in found):
            return True
    return False


async def test_the_capture_has_every_code_of_4_9_that_needs_no_accounts() -> None:
    of_5x_or_accounts = {18, 225, 343, 345, 351, 352, 361, 370, 50, 51, 52, 53, 54}
    of_pop = {400, 401, 200050, 200051, 200053, 200054, 200151}
    of_ours = {29401, 29402, 29403, 29404, 29405, 29406, 29407, 29408, 29409, 29410}
    assert {int(row.code) for row in BROKER} - of_5x_or_accounts - of_pop - of_ours <= set(CAPTURED)
