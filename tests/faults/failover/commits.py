"""Offsets that a consumer commits, against what a new master knows of them: values in, findings out; and who commits.

A master takes commits only while each member that may be the next one has had all offsets within a second. So a new
master, or one that was killed and is back, may lack the commits of the last second before the old one was lost, and
none that is older, however little of the machine they were given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.bench import rpc
from gantrymq.errors import GantryError
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.faults.replication.history import Finding
from tests.faults.replication.recorder import Pace
from tests.waiting import Beside

GROUP = "Committing"
EVERY_S = 0.05
ANSWER_S = 2.0
MAY_LACK_S = 1.0


@dataclass(frozen=True, slots=True)
class Commit:
    """One that a member answered. sent, answered: monotonic seconds."""

    sent: float
    answered: float
    member: str
    offset: int


@dataclass(frozen=True, slots=True)
class Look:
    """What a member says, before it takes the first commit in place of another, or the next one after it took none.

    Only of who takes commits: one that is back as a slave tells what its file has, until its master has told it all.
    """

    at: float
    member: str
    offset: int


def lost_commits(seen: Sequence[Commit | Look], *, may_lack_s: float = MAY_LACK_S) -> list[Finding]:
    """Looks that lack a commit which had been answered for longer when the last commit before the look was sent."""
    found: list[Finding] = []
    commits: list[Commit] = []
    for each in seen:
        if isinstance(each, Commit):
            commits.append(each)
            continue
        due = [commit.offset for commit in commits if commit.answered <= commits[-1].sent - may_lack_s]
        if due and max(due) > each.offset:
            text = f"{each.member} knows offset {each.offset} of the group, {max(due)} was committed earlier"
            found.append(Finding("offset_back", f"{text} than {may_lack_s:g} s before {commits[-1].member} was lost"))
    return found


class Committer(Beside):
    """Commits a larger offset every EVERY_S while its block runs. serving: the address that accepted a send last, ""
    while none does."""

    def __init__(self, topic: str, serving: Callable[[], str], pace: Pace | None = None) -> None:
        self._topic, self._serving, self._pace = topic, serving, pace or Pace()
        super().__init__(self._run, "committer")
        self.seen: list[Commit | Look] = []
        self.has_failed = False  # the last commit was not taken

    def _run(self) -> None:
        member, offset = "", 0
        while not self._pace.rest(self.ends, EVERY_S):
            serving = self._serving()
            if not serving:
                continue
            looks = []
            try:
                if (serving != member or self.has_failed) and member:
                    looks = [Look(time.monotonic(), serving, self._offset_at(serving))]
                member, began = serving, time.monotonic()
                self._ask(serving, RequestCode.UPDATE_CONSUMER_OFFSET, {"commitOffset": str(offset + 1)})
            except GantryError:  # it is lost, has handed over, or its slaves do not have the last ones yet
                self.has_failed = True
                continue
            offset += 1
            self.has_failed = False
            self.seen += looks
            self.seen.append(Commit(began, time.monotonic(), serving, offset))

    def _offset_at(self, address: str) -> int:
        answer = self._ask(address, RequestCode.QUERY_CONSUMER_OFFSET, {}, may_lack=True)
        return int(answer.ext_fields["offset"]) if answer.code == ResponseCode.SUCCESS else 0

    def _ask(self, address: str, code: int, fields: dict[str, str], *, may_lack: bool = False) -> RemotingCommand:
        fields = {"consumerGroup": GROUP, "topic": self._topic, "queueId": "0", **fields}
        with rpc.connect(address, timeout_s=ANSWER_S) as connection:
            answer = rpc.call(connection, RemotingCommand.request(code, fields))
        if answer.code != ResponseCode.SUCCESS and not may_lack:
            raise GantryError(answer.remark)
        return answer
