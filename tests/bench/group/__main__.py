"""The program of this package: see __init__."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from tests.bench.group.dledger import dledger
from tests.bench.group.loads import LoadRun, memory, one_load
from tests.bench.group.losses import Loss, one_loss
from tests.bench.group.tables import BASE, loads_table, losses_table, memory_table
from tests.bench.group.threes import Three, ours, supervised
from tests.interop.failover.program import BLOWS, kept_at

Make = Callable[[Path], contextlib.AbstractContextManager[Three]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.group", description=__doc__)
    parser.add_argument("--losses", type=int, default=5, help="of each kind; 0: none")
    parser.add_argument("--blows", default="kill,stop")
    parser.add_argument("--rounds", type=int, default=5, help="of each load; 0: none")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a load")
    parser.add_argument(
        "--warm", type=float, default=30.0, help="seconds of load before: a JVM needs them, ours gets them"
    )
    parser.add_argument("--senders", default="1,32")
    parser.add_argument("--lease", type=int, default=5, help="failoverLeaseSeconds")
    parser.add_argument("--of", default="supervised,ours,dledger", help="some of them")
    parser.add_argument("--keep", type=Path, help="folder for stores and logs, which stays")
    asked = parser.parse_args()
    logging.getLogger("gantrymq").setLevel(logging.ERROR)  # that a struck broker does not answer is no news
    every: dict[str, Make] = {"supervised": supervised, "ours": lambda folder: ours(folder, asked.lease), BASE: dledger}
    makes = {name: every[name] for name in asked.of.split(",")}
    with kept_at(asked.keep) as folder:
        for blow in asked.blows.split(",") if asked.losses else ():
            _losses(folder, makes, blow, asked.losses)
        if asked.rounds:
            by_hand = {name: make for name, make in makes.items() if name != "supervised"}
            _loads(folder, by_hand, asked)


def _losses(folder: Path, makes: Mapping[str, Make], blow: str, count: int) -> None:
    """All run at once, and lose their masters in turns."""
    found: dict[str, list[Loss]] = defaultdict(list)
    with contextlib.ExitStack() as stack:
        threes = {name: stack.enter_context(make(folder / f"{blow}-{name}")) for name, make in makes.items()}
        for number in range(count):
            for name, three in threes.items():
                found[name].append(one_loss(three, folder, BLOWS[blow], number))
                print(json.dumps({"blow": blow, "of": name, **found[name][-1].plain()}), flush=True)
    print(f"{blow}, s: median / largest of {count}", losses_table(found), sep="\n")


def _loads(folder: Path, makes: Mapping[str, Make], asked: argparse.Namespace) -> None:
    """All run at once, and get loads in turns."""
    load, widths = LoadProgram(generator_program()), [int(each) for each in asked.senders.split(",")]
    runs: dict[tuple[int, str], list[LoadRun]] = defaultdict(list)
    with contextlib.ExitStack() as stack:
        threes = {name: stack.enter_context(make(folder / f"loads-{name}")) for name, make in makes.items()}
        topics = {name: three.new_topic("Loads") for name, three in threes.items()}
        for name, three in threes.items():
            one_load(three, load, topics[name], max(widths), asked.warm)
        for number in range(asked.rounds):
            for senders in widths:
                for name in list(threes)[:: 1 if number % 2 else -1]:
                    run = one_load(threes[name], load, topics[name], senders, asked.seconds)
                    runs[senders, name].append(run)
                    print(json.dumps({"senders": senders, "of": name, **run.plain()}), flush=True)
        held = {name: memory(three, folder) for name, three in threes.items()}
    print(loads_table(runs), memory_table(held), sep="\n")


if __name__ == "__main__":
    main()
