"""The columns of the tables of samples, as the rows of kinds.py have them. `at` is at_ms as a time."""

from __future__ import annotations

from dataclasses import fields
from types import NoneType
from typing import get_args, get_type_hints

import pyarrow as pa

from appliance.reports.samples.kinds import BROKERS, GROUPS, SLAVES, Sample
from gantrymq.contrib.arrow.columns import TIME

_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_SMALL = ("seconds", "members", "looks", "counted_minutes")  # numbers that 32 bits hold


def _schema(row: type[Sample]) -> pa.Schema:
    hints = get_type_hints(row)
    columns = [("at", TIME)]
    for field in fields(row):
        if field.name != "at_ms":
            hint = hints[field.name]
            (kind,) = (one for one in get_args(hint) or (hint,) if one is not NoneType)
            columns.append((field.name, pa.int32() if field.name in _SMALL else _TYPES[kind]))
    return pa.schema(columns)


SCHEMAS = {kind.name: _schema(kind.row) for kind in (SLAVES, GROUPS, BROKERS)}
