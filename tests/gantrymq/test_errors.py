"""The tree of errors: its builtins, and that every one of them passes from process to process."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from gantrymq import errors
from gantrymq.errors import GantryError
from tests.source_files import ROOT, sources

REFUSED = errors.ResponseError(
    17, "no such topic", address="h:1", role="broker", request="SEND_MESSAGE_V2", name="TOPIC_NOT_EXIST", hint="create"
)
EXAMPLES: list[GantryError] = [
    errors.GantryError("text"),
    errors.ConfigError("text"),
    errors.WrongType("text"),
    errors.ProtocolError("text"),
    errors.FrameError("text"),
    errors.BodyError("text"),
    errors.RecordError("text", position=7),
    errors.ConnectError("h:1", "refused", role="broker", hint="is it running?"),
    errors.RequestTimeout("h:1", 310, 2.5, role="broker", request="SEND_MESSAGE_V2"),
    REFUSED,
    errors.LeaseEnded(208, "the lease has ended", address="h:1"),
    errors.RouteNotFound("topic"),
    errors.NoBrokerYet("topic", "none"),
    errors.MessageRejected("text"),
    errors.PayloadError("text"),
    errors.SendIncomplete({3: REFUSED}, [1, 2, 3, None]),
    errors.PartlyDone(["a"], {"b": errors.ConnectError("h:1", "refused")}),
    errors.ClientClosed("text"),
]


def facts(error: BaseException) -> tuple[object, ...]:
    return type(error), str(error), error.args, {name: str(value) for name, value in vars(error).items()}


def test_every_class_of_the_sdk_has_an_example() -> None:
    classes = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__}
    assert {type(error) for error in EXAMPLES} == classes


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_in_another_process(error: GantryError) -> None:
    error.add_note("at the third try")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert facts(pickle.loads(pickle.dumps(error, protocol))) == facts(error)
    assert facts(copy.copy(error)) == facts(error)


def test_an_error_of_the_other_packages_is_the_same_in_another_process() -> None:
    class Torn(GantryError):
        def __init__(self, path: str, *, at: int) -> None:
            super().__init__(f"{path} is torn at {at}")
            self.path, self.at = path, at

    error = Torn("commitlog", at=7)
    function, (kind, args), state = error.__reduce__()
    made = function(kind, args)
    made.__dict__.update(state)
    assert facts(made) == facts(error)


def test_no_class_of_the_project_pickles_in_a_way_of_its_own() -> None:
    own = [path.relative_to(ROOT).as_posix() for path in sources() if "def __reduce__" in path.read_text("utf-8")]
    assert own == ["gantrymq/errors.py"]


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ConnectError, ConnectionError), (errors.RequestTimeout, TimeoutError), (errors.ConfigError, ValueError),
        (errors.MessageRejected, ValueError), (errors.PayloadError, ValueError), (errors.WrongType, TypeError),
    ],
)  # fmt: skip
def test_an_error_is_also_the_builtin_that_people_catch(kind: type[GantryError], builtin: type[Exception]) -> None:
    assert issubclass(kind, builtin)
    assert issubclass(kind, GantryError)


def test_a_text_says_who_what_and_what_next() -> None:
    assert str(REFUSED) == "broker h:1 answered SEND_MESSAGE_V2 with TOPIC_NOT_EXIST (17): no such topic (create)"
    assert str(errors.ResponseError(2, None)) == "the peer answered with code 2: no remark"
    assert str(EXAMPLES[7]) == "broker h:1: refused (is it running?)"
    assert str(EXAMPLES[8]).startswith("broker h:1 did not answer SEND_MESSAGE_V2 within 2.5 s; ")
