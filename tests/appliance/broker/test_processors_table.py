"""The written-out table of request codes: each stands there once, with its number, and handlers get what they name."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from appliance.acl.permission_table import PERMISSIONS
from appliance.broker.access.lane_limits import lane_limits
from appliance.broker.controller import BrokerController
from appliance.broker.processors import table
from appliance.broker.processors.admin_broker import get_runtime_info
from appliance.broker.processors.table import TABLE, without_pulls
from appliance.namesrv import table as namesrv_table
from appliance.remoting.route_table import Row, routes_of
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.codes import RequestCode
from tests.appliance.broker.processors.unopened import unopened_broker

ROW = re.compile(r"^    Row\(Code\.(\w+), .*\),  # (\d+)$", re.MULTILINE)


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
def test_a_handler_names_the_parts_that_it_uses(row: Row[Any]) -> None:
    first, *others = inspect.signature(row.handler).parameters.values()
    assert first.annotation.endswith("Parts") or row.handler is get_runtime_info, "which tells of the whole broker"
    assert len(others) == 2


def test_the_controller_has_all_parts_that_are_named(broker: BrokerController) -> None:
    """mypy compares their types; this one sees that each is there once the broker is open."""
    handlers = [inspect.unwrap(row.handler) for row in TABLE if row.handler is not get_runtime_info]
    kinds = {handler.__globals__[next(iter(handler.__annotations__.values()))] for handler in handlers}
    names = {name for kind in kinds for each in kind.__mro__ for name in vars(each).get("__annotations__", ())}
    assert len(names) > 20
    assert [name for name in sorted(names) if not hasattr(broker, name)] == []


def test_the_second_port_serves_all_but_pulls(broker: BrokerController) -> None:
    routes = routes_of(TABLE, broker)
    assert routes.keys() - without_pulls(routes).keys() == {RequestCode.PULL_MESSAGE}


def test_what_depends_on_the_port_is_not_there_before_it_is_known(tmp_path: Path) -> None:
    with unopened_broker(tmp_path) as broker:
        assert broker.is_open
        assert broker.address.endswith(":10911")
    unborn = BrokerController(broker.config, broker.store_config)
    assert not unborn.is_open
    with pytest.raises(AttributeError, match="address"):
        _ = unborn.address
