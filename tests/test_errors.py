"""The tree of errors: one base, a code each, one-line summaries, and they can be pickled."""

from __future__ import annotations

import copy
import pickle

import pytest

from matchmill import errors
from matchmill.errors import (
    BackgroundError,
    DuplicateIdError,
    EventError,
    ExpressionError,
    FileFormatError,
    FolderError,
    FolderInUseError,
    InputError,
    LimitError,
    MatchmillError,
    MissingDependencyError,
    QuotaError,
    ReadOnlyError,
    ServiceError,
    StoreError,
    UnknownIdError,
    did_you_mean,
)

CLASSES = [getattr(errors, name) for name in errors.__all__ if name[0].isupper()]

BASES = {
    InputError: (MatchmillError, ValueError),
    ExpressionError: (InputError,),
    LimitError: (ExpressionError,),
    EventError: (InputError,),
    FileFormatError: (InputError,),
    DuplicateIdError: (InputError,),
    UnknownIdError: (MatchmillError, KeyError),
    FolderError: (MatchmillError, RuntimeError),
    FolderInUseError: (FolderError,),
    ReadOnlyError: (FolderError,),
    BackgroundError: (MatchmillError, RuntimeError),
    ServiceError: (MatchmillError, RuntimeError),
    QuotaError: (ServiceError,),
    StoreError: (ServiceError,),
    MissingDependencyError: (MatchmillError, ImportError),
}


def test_the_tree() -> None:
    assert {kind: kind.__bases__ for kind in CLASSES if kind is not MatchmillError} == BASES


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_code_hint_summary_and_can_be_pickled(kind: type[MatchmillError]) -> None:
    error = kind("it is\nwrong", hint="do this")
    assert error.code
    assert (error.hint, error.summary) == ("do this", "it is wrong; do this")
    assert str(error) == "it is\nwrong\nhint: do this"
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert (str(again), again.code, again.hint) == (str(error), error.code, error.hint)


def test_codes_tell_classes_apart() -> None:
    codes = [kind.code for kind in CLASSES if kind is not LimitError]
    assert len(set(codes)) == len(codes)
    assert LimitError.code == ExpressionError.code == "bad_expression"


def test_an_expression_error_keeps_its_place() -> None:
    error = LimitError("too much", text="a = 1\nand b", position=10, hint="less")
    again = pickle.loads(pickle.dumps(error))
    assert (again.text, again.position, again.line, again.column) == ("a = 1\nand b", 10, 2, 5)
    assert str(again) == str(error) == "too much (line 2, column 5)\n  and b\n      ^\nhint: less"
    assert error.summary == "too much at line 2, column 5; less"


def test_a_service_error_keeps_what_the_service_said() -> None:
    error = QuotaError("no more", status=409, retry_after=2.5, code="quota", field="id")
    again = pickle.loads(pickle.dumps(error))
    assert (again.status, again.retry_after, again.field) == (409, 2.5, "id")
    assert ServiceError("x", code="other").code == "other"
    assert ServiceError("x").code == "service"


def test_an_unknown_id_is_not_shown_in_quotes() -> None:
    assert str(UnknownIdError("there is no subscription 'u1'")) == "there is no subscription 'u1'"


def test_suggestions() -> None:
    assert did_you_mean("Expresion", ["id", "expression"]) == "; did you mean 'expression'?"
    assert did_you_mean("zzz", ["id", "expression"]) == ""
