"""The fixture of all fuzzed targets."""

from tests.fuzz.fuzzing import fuzz as fuzz
