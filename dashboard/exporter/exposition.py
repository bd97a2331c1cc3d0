"""Prometheus' text format 0.0.4: families of samples to text. Pure.

Names of topics, groups and clients are labels, so all that stands in one is escaped, and a page has a largest number of
samples: what is beyond it is left out and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SAMPLES_MAX = 100_000  # some 10 MB; Prometheus refuses far smaller pages if it is told to (sample_limit)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(slots=True)
class Family:
    """One metric with its samples. A value of None was not known: there is no sample then, for 0 would be a lie."""

    name: str
    help: str
    kind: str = "gauge"
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)

    def add(self, value: float | None, **labels: str) -> None:
        if value is not None and math.isfinite(value):
            self.samples.append((labels, value))


def exposition(families: Iterable[Family], samples_max: int = SAMPLES_MAX) -> str:
    """The page. Its last sample says how many were left out."""
    lines: list[str] = []
    left, left_out = samples_max, 0
    for family in families:
        taken = family.samples[:left]
        left -= len(taken)
        left_out += len(family.samples) - len(taken)
        _write(lines, family, taken)
    missing = Family("gantry_samples_left_out", "Samples beyond the largest page")
    missing.add(left_out)
    _write(lines, missing, missing.samples)
    return "\n".join(lines) + "\n"


def _write(lines: list[str], family: Family, samples: Iterable[tuple[Mapping[str, str], float]]) -> None:
    lines.append(f"# HELP {family.name} {family.help}")
    lines.append(f"# TYPE {family.name} {family.kind}")
    for labels, value in samples:
        shown = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items())
        lines.append(f"{family.name}{{{shown}}} {_number(value)}" if shown else f"{family.name} {_number(value)}")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
