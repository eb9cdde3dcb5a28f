"""What a worker does with rows of subscriptions: read, check, write in one form.

    expression rows    id, expression (text or a JSON pattern), problem, raw, source
    JSON lines         line, source
    condition rows     id, conditions (attribute, operator, values), raw, source
      ──►
    checked rows       id, shown_id, expression, reason, raw, n_in, source

A row with a reason is bad and has no id, but `shown_id`, a text, says what stood there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.engine.expression_input import normal_form, read_expression, text_of
from matchmill.engine.subscription_table import check_id
from matchmill.errors import InputError, MatchmillError
from matchmill.io.subscription_files import read_json_line
from matchmill.language.expression import literal_text, name_text
from matchmill.language.plain_values import plain_value
from matchmill.operators.modules import import_operators
from matchmill.settings import Settings
from matchmill.spark.ingestion.ingested import came_in
from matchmill.spark.ingestion.plain_rows import REPLACED, PlainReader, PlainRows

__all__ = ["CHECKED", "Checks", "checked_batches", "condition_text"]

CHECKED = (
    "shown_id string, expression string, reason string, raw string, n_in bigint, source string"
)

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_SHOWN = 200


class Checks(NamedTuple):
    """All that a worker must know."""

    form: str  # "expressions", "lines" or "conditions"
    integer_ids: bool
    names: tuple[str, str]  # of id and expression in JSON lines
    dialect: str
    operators: tuple[str, ...]  # modules to import, which register operators
    settings: Settings


class _Row(NamedTuple):
    id: object
    expression: object
    problem: str | None
    raw: str | None


def checked_batches(batches: Iterable[pa.RecordBatch], checks: Checks) -> Iterator[pa.RecordBatch]:
    """Check the rows of some batches."""
    import_operators(checks.operators)
    read = {"expressions": _expressions, "lines": _lines, "conditions": _conditions}[checks.form]
    reader = PlainReader(checks.settings, checks.dialect, integer_ids=checks.integer_ids)
    for batch in batches:
        plain = reader.read(batch) if checks.form == "expressions" else None
        if plain is None:
            columns = _columns(read(batch, checks), checks)
        else:
            columns = _with_others(plain, batch, checks)
        extra = batch.schema.names[batch.schema.names.index("source") :]
        yield pa.record_batch(
            [*columns, came_in(batch.num_rows), *(batch.column(name) for name in extra)],
            ["id", "shown_id", "expression", "reason", "raw", "n_in", *extra],
        )


def _columns(rows: Iterable[_Row], checks: Checks) -> list[pa.Array]:
    """Check rows one by one."""
    columns = list(zip(*(_checked(row, checks) for row in rows), strict=True)) or [()] * 5
    id_type = pa.int64() if checks.integer_ids else pa.string()
    kinds = (id_type, *[pa.string()] * 4)
    return [pa.array(c, kind) for c, kind in zip(columns, kinds, strict=True)]


def _with_others(plain: PlainRows, batch: pa.RecordBatch, checks: Checks) -> list[pa.Array]:
    """Check the rows that are not plain, and put all in their order."""
    is_other = np.ones(batch.num_rows, bool)
    is_other[plain.rows] = False
    others = np.flatnonzero(is_other)
    shown_ids = pc.utf8_slice_codeunits(plain.ids.cast(pa.string()), 0, _SHOWN)
    no_reason = pa.nulls(len(plain.rows), pa.string())
    raw = batch.column("raw").take(pa.array(plain.rows))
    good = [plain.ids, shown_ids, plain.expressions, no_reason, raw]
    if not len(others):
        return good
    checked = _columns(_expressions(batch.take(pa.array(others)), checks), checks)
    order = pa.array(np.argsort(np.concatenate([plain.rows, others])))
    return [pa.concat_arrays(both).take(order) for both in zip(good, checked, strict=True)]


def _checked(row: _Row, checks: Checks) -> tuple[Any, str | None, str | None, str | None, Any]:
    shown = None if row.id is None else str(row.id)[:_SHOWN]
    try:
        if row.problem is not None:
            raise InputError(row.problem)
        subscription_id = _subscription_id(row.id, checks.integer_ids)
        if row.expression is None or row.expression == "":
            raise InputError("the expression is missing; `true` matches every event")
        _check_encoding(row.expression)
        parsed = read_expression(row.expression, checks.settings, checks.dialect)
        normal_form(row.expression, parsed, checks.settings)
    except MatchmillError as error:
        reason = error.summary
        return None, shown, None, reason, row.raw
    return subscription_id, shown, text_of(row.expression, parsed, checks.dialect), None, row.raw


def _subscription_id(found: object, integer_ids: bool) -> str | int:
    if found is None or found == "":
        raise InputError("the id is missing")
    if integer_ids and isinstance(found, str):
        if not _INTEGER.fullmatch(found):
            raise InputError(f"the id {found[:40]!r} is not an integer")
        found = int(found)
    elif not integer_ids and isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    _check_encoding(found)
    return check_id(found)


def _check_encoding(value: object) -> None:
    if isinstance(value, str) and not value.isascii() and REPLACED in value:
        raise InputError(
            f"it holds U+FFFD at character {value.index(REPLACED) + 1}: bytes that are not UTF-8"
        )


# -- forms of rows --------------------------------------------------------------------------------


def _expressions(batch: pa.RecordBatch, checks: Checks) -> Iterator[_Row]:
    names = ("id", "expression", "problem", "raw")
    return map(_Row, *(batch.column(name).to_pylist() for name in names))


def _lines(batch: pa.RecordBatch, checks: Checks) -> Iterator[_Row]:
    for line in batch.column("line").to_pylist():
        found = read_json_line(0, line.removeprefix("\ufeff"), checks.names)
        is_json = not (found.problem or "").startswith("not valid JSON")
        raw = line if is_json else json.dumps({"line": line}, ensure_ascii=False)
        yield _Row(found.id, found.expression, found.problem, raw)


def _conditions(batch: pa.RecordBatch, checks: Checks) -> Iterator[_Row]:
    columns = (batch.column(name).to_pylist() for name in ("id", "conditions", "raw"))
    for subscription_id, conditions, raw in zip(*columns, strict=True):
        try:
            texts = sorted(condition_text(*c.values()) for c in conditions)
            yield _Row(subscription_id, " and ".join(texts), None, raw)
        except MatchmillError as error:
            yield _Row(subscription_id, None, str(error), raw)


# -- conditions -----------------------------------------------------------------------------------

_ONE = {"=", "==", "!=", "<>", "<", "<=", ">", ">=", "like", "ilike", "rlike", "contains"}
_ONE |= {"not like", "not ilike", "not rlike"}
_MANY = {"in", "not in", "contains any", "contains all", "contains none"}
_TWO = {"between", "not between"}
_NONE = {"is null", "is not null"}


def condition_text(attribute: object, operator: object, values: object) -> str:
    """Write one row (attribute, operator, values) as text. A text of values is JSON."""
    if not isinstance(attribute, str) or not attribute:
        raise InputError("the attribute is missing")
    word = " ".join(str(operator or "").lower().split())
    literals = [_literal(attribute, value) for value in _values(attribute, values)]
    wanted = _number_of_values(word)
    if wanted is None:
        known = ", ".join(sorted(_ONE | _MANY | _TWO | _NONE))
        raise InputError(f"{attribute}: unknown operator {operator!r}; there are: {known}")
    if not wanted[0] <= len(literals) <= wanted[1]:
        much = wanted[0] if wanted[0] == wanted[1] else f"at least {wanted[0]}"
        raise InputError(f"{attribute} {word}: takes {much} values, not {len(literals)}")
    name = name_text(attribute)
    if word in _TWO:
        return f"{name} {word} {literals[0]} and {literals[1]}"
    if word in _MANY:
        return f"{name} {word} ({', '.join(literals)})"
    return " ".join([name, word, *literals])


def _number_of_values(word: str) -> tuple[int, int] | None:
    for words, n_values in (
        (_ONE, (1, 1)), (_TWO, (2, 2)), (_NONE, (0, 0)), (_MANY, (1, 1 << 62)),
    ):  # fmt: skip
        if word in words:
            return n_values
    return None


def _values(attribute: str, values: object) -> Sequence[object]:
    if isinstance(values, str):
        try:
            values = json.loads(values)
        except ValueError as error:
            raise InputError(
                f"{attribute}: the values {str(values)[:40]!r} are not JSON ({error}); texts need"
                ' double quotes: ["JFK"]'
            ) from None
    if values is None:
        return ()
    return values if isinstance(values, list) else [values]


def _literal(attribute: str, value: object) -> str:
    try:
        return literal_text(plain_value(value))
    except (TypeError, ValueError) as error:  # an ExpressionError is one of these
        raise InputError(f"{attribute}: {error}") from None
