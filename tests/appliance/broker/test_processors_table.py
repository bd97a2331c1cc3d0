"""The written-out table of request codes: each stands there once, with its number, and handlers get what they name."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.acl.permission_table import PERMISSIONS
from appliance.broker import controller, loading, open_parts, services
from appliance.broker.controller import BrokerController
from appliance.broker.lane_limits import lane_limits
from appliance.broker.processors import table
from appliance.broker.processors.table import TABLE, without_pulls
from appliance.namesrv import table as namesrv_table
from appliance.remoting.route_table import Row, parts_of, routes_of
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.codes import RequestCode
from tests.appliance.broker.processors.unopened import unopened_broker

ROW = re.compile(r"^    Row\(Code\.(\w+), .*\),  # (\d+)$", re.MULTILINE)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerController]:
    with unopened_broker(tmp_path) as broker:
        yield broker


@pytest.mark.parametrize("rows", [TABLE, namesrv_table.TABLE], ids=["broker", "name server"])
def test_no_code_stands_twice_and_they_are_sorted(rows: tuple[Row[Any], ...]) -> None:
    codes = [int(row.code) for row in rows]
    assert [code for code, count in Counter(codes).items() if count > 1] == []
    assert codes == sorted(codes)


@pytest.mark.parametrize("module", [table, namesrv_table], ids=["broker", "name server"])
def test_each_line_says_its_number(module: Any) -> None:
    lines = ROW.findall(inspect.getsource(module))
    assert len(lines) == len(module.TABLE)
    assert [(RequestCode[name].value, name) for name, _ in lines] == [(int(number), name) for name, number in lines]


def test_each_code_has_a_row_that_says_who_may_ask() -> None:
    assert {int(row.code) for row in TABLE} <= set(map(int, PERMISSIONS))


def test_each_lane_of_the_table_has_limits() -> None:
    assert {row.lane for row in TABLE} == lane_limits(BrokerConfig()).keys()


@pytest.mark.parametrize("row", [*TABLE, *namesrv_table.TABLE], ids=lambda row: str(int(row.code)))
def test_a_handler_takes_the_parts_of_its_row(row: Row[Any]) -> None:
    first, *others = inspect.signature(row.handler).parameters.values()
    assert first.annotation in (row.parts.__name__, "RuntimeInfoParts")
    assert len(others) == 2


@pytest.mark.parametrize(
    "kind",
    sorted(
        {loading.Parts, open_parts.Parts, services.Parts, *(row.parts for row in TABLE)},
        key=lambda kind: kind.__module__,
    ),
    ids=lambda kind: kind.__module__.rpartition(".")[2],
)
def test_parts_are_filled_by_name_with_what_they_are_said_to_be(broker: BrokerController, kind: type) -> None:
    parts = parts_of(kind, broker.opened, broker)
    types = typing.get_type_hints(kind, localns=vars(controller) | vars(open_parts))
    for field in dataclasses.fields(kind):
        wanted = types[field.name]
        allowed = [typing.get_origin(each) or each for each in typing.get_args(wanted) or (wanted,)]
        if typing.get_origin(wanted) is not None and callable(getattr(parts, field.name)):
            continue  # a hook
        assert isinstance(getattr(parts, field.name), tuple(allowed)), field.name


def test_a_part_that_nobody_has_is_told_at_the_start() -> None:
    @dataclasses.dataclass
    class Wants:
        moon: str

    with pytest.raises(AttributeError, match="wants 'moon'"):
        parts_of(Wants, object())


def test_handlers_of_one_module_share_their_parts(broker: BrokerController) -> None:
    routes = routes_of(TABLE, broker.opened, broker)
    shared = {id(routes[code].handler.__self__) for code in (14, 15, 38)}  # type: ignore[attr-defined]
    assert len(shared) == 1


def test_the_second_port_serves_all_but_pulls(broker: BrokerController) -> None:
    routes = routes_of(TABLE, broker.opened, broker)
    assert routes.keys() - without_pulls(routes).keys() == {RequestCode.PULL_MESSAGE}


def test_what_depends_on_the_port_is_not_there_before_it_is_known(tmp_path: Path) -> None:
    with unopened_broker(tmp_path) as broker:
        assert broker.opened.address.endswith(":10911")
    unborn = BrokerController(broker.config, broker.store_config)
    with pytest.raises(RuntimeError, match="not open"):
        _ = unborn.opened
