"""The command behind deploy/build-binary."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path

from deploy.binary.application import ROOT
from deploy.binary.assembly import build
from deploy.binary.interpreter import interpreter, python_of, tested_interpreter
from deploy.binary.kept import CACHE, Kept
from deploy.binary.parts import BuildError, read_lock


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/build-binary", description="Build the single file.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "gantry", help="default: dist/gantry")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"folder for made parts (default: {CACHE})")
    parser.add_argument(
        "--interpreter", nargs="?", const="own", metavar="3.13",
        help="build nothing else, and print where its Python is, or that of a version that only tests run on",
    )  # fmt: skip
    given = parser.parse_args()
    kept = Kept(given.cache.absolute())
    try:
        if given.interpreter:
            with kept.alone(), redirect_stdout(sys.stderr):
                python = _interpreter(kept, given.interpreter)
            print(python)
        else:
            build(kept, given.output.absolute())
    except BuildError as exc:
        print(f"deploy/build-binary: {exc}", file=sys.stderr)
        return 1
    return 0


def _interpreter(kept: Kept, name: str) -> Path:
    if name == "own":
        return python_of(interpreter(kept, read_lock()))
    return python_of(tested_interpreter(kept, read_lock(), name))


if __name__ == "__main__":
    sys.exit(main())
