"""`python -m tests.bench.sdk [--quick] [--rounds N] [--json FILE]`: CPU time a message and rate of each flow."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import orjson

from tests.bench.sdk.report import SdkBench

FULL, QUICK = 20_000, 4_000  # messages of a run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sdk", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer messages, one round")
    parser.add_argument("--rounds", type=int, metavar="N", help="runs of each flow; the median counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single run to FILE")
    given = parser.parse_args()
    rounds = given.rounds or (1 if given.quick else 3)
    with tempfile.TemporaryDirectory(prefix="gantry-bench-") as work:
        bench = SdkBench(
            Path(work), lambda line: print(line, file=sys.stderr), count=QUICK if given.quick else FULL, rounds=rounds
        )
        text, figures = bench.run()
    print(text, end="")
    if given.json:
        given.json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    main()
