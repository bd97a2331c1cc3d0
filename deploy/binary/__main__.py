"""The command behind deploy/build-binary."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deploy.binary.application import ROOT
from deploy.binary.assembly import build
from deploy.binary.kept import CACHE, Kept
from deploy.binary.parts import BuildError


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/build-binary", description="Build the single file.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "gantry", help="default: dist/gantry")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"folder for made parts (default: {CACHE})")
    given = parser.parse_args()
    try:
        build(Kept(given.cache.absolute()), given.output.absolute())
    except BuildError as exc:
        print(f"deploy/build-binary: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
