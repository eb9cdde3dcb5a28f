"""Expressions as DuckDB's SQL, and events as a table: an independent judge of the semantics.

Nothing here calls the code that it judges. An attribute may hold values of any type, so a table
has, for the k-th name, one column per type; at most one of them is not null in a row:

    a<k>_i BIGINT   a<k>_f DOUBLE   a<k>_s VARCHAR   a<k>_b BOOLEAN   a<k>_d DATE   a<k>_t TIMESTAMP
    a<k>_p4 BIGINT  a<k>_p6 UHUGEINT    the address that the text is, if any, by the C library
    a<k>_list_i BIGINT[] …          the same for the elements of a list; all null if it is none

A predicate looks at the columns of its literals' types. A value of another type leaves them null,
and SQL's three-valued logic does the rest.

Numbers are the hard part: DuckDB compares a BIGINT with a DOUBLE as doubles, where
9007199254740993 equals 9007199254740992.0. Two integers or two doubles compare exactly; between
an integer n and a double x only whole numbers are compared, as HUGEINT:

    x < n  iff  floor(x) < n        x <= n  iff  ceil(x) <= n        x = n  iff  both equal n
"""

from __future__ import annotations

import datetime as dt
import math
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    Predicate,
    RLike,
    TruthTest,
)

__all__ = ["Judge"]

_ARROW_TYPES = {
    "i": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
    "p4": pa.int64(),
    "p6": pa.string(),  # of digits: Arrow has no type of 128 bits
}

# Beyond ±1e19 every double is on the same side of all 64-bit integers.
_MACROS = r"""
create macro whole_below(x) as cast(floor(greatest(-1e19, least(1e19, x))) as hugeint);
create macro date_of(x) as case when regexp_full_match(x, '\d{4}-\d{2}-\d{2}')
    then try_cast(x as date) end;
create macro time_of(x) as case when regexp_full_match(x,
    '\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:\d{2})?)?')
    then try_cast(x as timestamptz)::timestamp end;
create macro whole_above(x) as cast(ceil(greatest(-1e19, least(1e19, x))) as hugeint);
"""

Columns = Mapping[str, str]  # type letter → SQL


class Judge:
    """A table of events in DuckDB, and the truth of expressions for every one of them."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        flat = [dict(_flat(event)) for event in events]
        names = dict.fromkeys(name for event in flat for name in event)
        self.positions = {name: k for k, name in enumerate(names)}
        self.connection = duckdb.connect()
        self.connection.execute("set threads = 1; set timezone = 'UTC'")
        self.connection.execute(_MACROS)
        self._create(flat)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def truths(
        self, expressions: Sequence[Expression], *, per_query: int = 50
    ) -> list[list[bool | None]]:
        """For each expression, its truth for each event."""
        out: list[list[bool | None]] = []
        for start in range(0, len(expressions), per_query):
            columns = ", ".join(self.sql(e) for e in expressions[start : start + per_query])
            rows = self.connection.execute(f"select {columns} from events order by row").fetchall()
            out += [list(column) for column in zip(*rows, strict=True)]
        return out

    # -- the table --------------------------------------------------------------------------------

    def _create(self, flat: list[dict[str, Any]]) -> None:
        arrays: dict[str, pa.Array] = {"row": pa.array(range(len(flat)), pa.int64())}
        casts = []
        for name, k in self.positions.items():
            values: list[Any] = [event.get(name) for event in flat]
            for letter, kind in _ARROW_TYPES.items():
                scalars = [None if _is_list(v) else _as(letter, v) for v in values]
                lists = [[_as(letter, e) for e in v] if _is_list(v) else None for v in values]
                arrays[f"a{k}_{letter}"] = pa.array(scalars, kind)
                arrays[f"a{k}_list_{letter}"] = pa.array(lists, pa.list_(kind))
            casts.append(f"a{k}_p6::uhugeint as a{k}_p6")
            casts.append(f"a{k}_list_p6::uhugeint[] as a{k}_list_p6")
            # A text in ISO 8601 also stands for a time.
            casts.append(f"coalesce(a{k}_d, date_of(a{k}_s)) as a{k}_d")
            casts.append(f"coalesce(a{k}_t, time_of(a{k}_s)) as a{k}_t")
        self.connection.register("raw", pa.table(arrays))
        replaced = f" replace ({', '.join(casts)})" if casts else ""
        self.connection.execute(f"create table events as select *{replaced} from raw")
        self.connection.unregister("raw")

    def _columns(self, name: str) -> Columns:
        k = self.positions[name]
        return {letter: f"a{k}_{letter}" for letter in _ARROW_TYPES}

    # -- expressions ------------------------------------------------------------------------------

    def sql(self, node: Expression) -> str:
        """An expression as one Boolean of SQL."""
        if isinstance(node, Constant):
            return str(node.value).lower()
        if isinstance(node, Not):
            return f"(not {self.sql(node.operand)})"
        if isinstance(node, And | Or):
            word = " and " if isinstance(node, And) else " or "
            return "(" + word.join(self.sql(part) for part in node.operands) + ")"
        if isinstance(node, TruthTest):
            word = "null" if node.truth is None else str(node.truth).lower()
            return f"({self.sql(node.operand)} is {'not ' if node.negated else ''}{word})"
        assert isinstance(node, Predicate)
        return self._predicate(node) if node.name in self.positions else _on_nothing(node)

    def _predicate(self, node: Predicate) -> str:
        columns = self._columns(node.name)
        k = self.positions[node.name]
        if isinstance(node, IsNull):
            typed = ", ".join(f"a{k}_{letter}::varchar" for letter in "ifsbdt")
            word = "not null" if node.negated else "null"
            return f"(coalesce({typed}, a{k}_list_i::varchar) is {word})"
        if isinstance(node, IsTrue):
            return columns["b"]
        lists = {letter: f"a{k}_list_{letter}" for letter in columns}
        if isinstance(node, Contains):
            return _contains(node, lists)
        if getattr(node, "any_element", False):
            return _some_element(
                lists, {of: _on_scalar(node, _of_element(of)) for of in _letters(node)}
            )
        return _on_scalar(node, columns)


# -- predicates -----------------------------------------------------------------------------------


def _on_nothing(node: Predicate) -> str:
    """A predicate on a name that no event has."""
    if isinstance(node, IsNull):
        return "false" if node.negated else "true"
    return "null::boolean"


def _letters(node: Predicate) -> list[str]:
    """The types of columns that a predicate looks at."""
    if isinstance(node, InNetwork):
        return ["p4", "p6"]
    if isinstance(node, Like | RLike):
        return ["s"]
    if isinstance(node, Compare):
        literals: tuple[Any, ...] = (node.value,)
    elif isinstance(node, Between):
        literals = (node.low, node.high)
    else:
        assert isinstance(node, In | Contains)
        literals = node.values
    found = {_letter(value) for value in literals}
    found |= {"i", "f"} if found & {"i", "f"} else set()
    return sorted(found | {"s"} if found & {"d", "t"} else found)


def _of_element(letter: str) -> Columns:
    """An element of a list of one type: a text may stand for a time."""
    return {"s": "e", "d": "date_of(e)", "t": "time_of(e)"} if letter == "s" else {letter: "e"}


def _on_scalar(node: Predicate, columns: Columns) -> str:
    """A predicate on those columns of a value, or of an element, that are given."""
    negated = "not " if getattr(node, "negated", False) else ""
    if isinstance(node, Compare):
        return _compare(node.op, columns, node.value)
    if isinstance(node, In):
        return f"({negated}{_among(node.values, columns)})"
    if isinstance(node, Between):
        low, high = _compare(">=", columns, node.low), _compare("<=", columns, node.high)
        return f"({negated}({low} and {high}))"
    if isinstance(node, Like):
        word = "ilike" if node.ignore_case else "like"
        return f"({columns['s']} {negated}{word} {_text(node.pattern)} escape '\\')"
    if isinstance(node, RLike):
        return f"({negated}regexp_matches({columns['s']}, {_text(node.pattern)}))"
    assert isinstance(node, InNetwork)
    return f"({negated}{_in_networks(node.networks, columns)})"


def _compare(op: str, columns: Columns, literal: Any) -> str:
    sql = "<>" if op == "!=" else op
    letter = _letter(literal)
    if letter in "if":
        cases = [
            f"when {columns[of]} is not null then {_compare_numbers(op, columns[of], of, literal)}"
            for of in "if"
            if of in columns
        ]
        return f"(case {' '.join(cases)} end)" if cases else "null::boolean"
    if letter not in columns:
        return "null::boolean"
    return f"({columns[letter]} {sql} {_literal(literal)})"


def _compare_numbers(op: str, column: str, of: str, literal: Any) -> str:
    """An exact comparison of a column that is not null."""
    sql = "<>" if op == "!=" else op
    right = _literal(literal)
    if of == _letter(literal):
        return f"({column} {sql} {right})"
    if of == "f":  # a double against an integer
        below, above, other = f"whole_below({column})", f"whole_above({column})", right
        strict = {"<": below, "<=": above, ">": above, ">=": below}
        if op in strict:
            return f"({strict[op]} {op} {other}::hugeint)"
    else:  # an integer against a double
        below, above, other = f"whole_below({right})", f"whole_above({right})", column
        strict = {"<": above, "<=": below, ">": below, ">=": above}
        if op in strict:
            return f"({other}::hugeint {op} {strict[op]})"
    same = f"({below} = {other}::hugeint and {above} = {other}::hugeint)"
    return same if op == "=" else f"(not {same})"


def _among(values: Sequence[Any], columns: Columns) -> str:
    """`in`: by type, because the values of other types are left out rather than unknown."""
    groups: dict[str, list[Any]] = {}
    for value in values:
        letter = _letter(value)
        groups.setdefault("number" if letter in "if" else letter, []).append(value)
    choices = []
    for group, members in groups.items():
        if group == "number":
            choices.append("(" + " or ".join(_compare("=", columns, v) for v in members) + ")")
        elif group in columns:
            choices.append(f"({columns[group]} in ({', '.join(_literal(v) for v in members)}))")
    if not choices:
        return "null::boolean"
    some = " or ".join(f"coalesce({choice}, false)" for choice in choices)
    known = " or ".join(f"{choice} is not null" for choice in choices)
    return f"(case when {known} then ({some}) end)"


def _in_networks(networks: Sequence[str], columns: Columns) -> str:
    """Only one of the two columns is not null; networks of the other version do not hold it."""
    choices = []
    for letter, n_bits in (("p4", 32), ("p6", 128)):
        if letter not in columns:
            continue
        column, of = columns[letter], "bigint" if letter == "p4" else "uhugeint"
        tests = ["false"]
        for network in networks:
            address, _, prefix = network.partition("/")
            base = _address(letter, address)
            if base is not None:
                last = int(base) | ((1 << (n_bits - int(prefix or n_bits))) - 1)
                tests.append(f"{column} between '{base}'::{of} and '{last}'::{of}")
        choices.append(f"when {column} is not null then ({' or '.join(tests)})")
    return f"(case {' '.join(choices)} end)"


def _some_element(lists: Columns, tests: Mapping[str, str]) -> str:
    """Whether a test holds for an element e, for each type's list its own."""
    found = [f"len(list_filter({lists[of]}, lambda e: {sql})) > 0" for of, sql in tests.items()]
    return f"({' or '.join(found)})"


def _contains(node: Contains, lists: Columns) -> str:
    """By DuckDB's list functions; numbers one by one, for they compare across two lists."""
    tests = []
    groups: dict[str, list[Any]] = {}
    for value in node.values:
        groups.setdefault(_letter(value), []).append(value)
    function = "list_has_all" if node.mode == "all" else "list_has_any"
    for letter, members in groups.items():
        if letter in "dt":
            for value in members:
                cases = {of: _compare("=", _of_element(of), value) for of in (letter, "s")}
                tests.append(_some_element(lists, cases))
            continue
        if letter not in "if":
            literals = "[" + ", ".join(_literal(v) for v in members) + "]"
            tests.append(f"{function}({lists[letter]}, {literals})")
            continue
        for value in members:
            tests.append(_some_element(lists, {of: _compare("=", {of: "e"}, value) for of in "if"}))
    if node.mode == "all":
        return "(" + " and ".join(tests) + ")"
    return f"({'not ' if node.mode == 'none' else ''}({' or '.join(tests)}))"


# -- values ---------------------------------------------------------------------------------------


def _flat(event: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in event.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


_LETTERS = {bool: "b", int: "i", float: "f", str: "s", dt.datetime: "t", dt.date: "d"}


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _letter(value: Any) -> str:
    """The column that holds a value; none for null and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return next(letter for kind, letter in _LETTERS.items() if isinstance(value, kind))


def _as(letter: str, value: Any) -> Any:
    """A value for the column of a type: null if it is of another."""
    if letter in ("p4", "p6"):
        return _address(letter, value) if isinstance(value, str) else None
    if _letter(value) != letter:
        return None
    if letter == "t" and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def _address(letter: str, text: str) -> Any:
    """The number of an address, by the C library and not by Python's ipaddress."""
    try:
        packed = socket.inet_pton(socket.AF_INET if letter == "p4" else socket.AF_INET6, text)
    except (OSError, ValueError):
        return None
    number = int.from_bytes(packed, "big")
    return number if letter == "p4" else str(number)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(value: Any) -> str:
    letter = _letter(value)
    if letter == "s":
        return _text(value)
    if letter == "b":
        return str(value).lower()
    if letter == "i":
        return f"'{value}'::bigint"
    if letter == "f":
        return f"'{value!r}'::double"
    if letter == "d":
        return f"'{value.isoformat()}'::date"
    return f"'{value.isoformat(' ')}'::timestamp"
