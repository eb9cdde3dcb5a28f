"""Which types of columns events may have, and how the others are left out.

    boolean, numbers, text, dates, timestamps, null     attributes
    arrays of these; structs; maps from text            what is inside, at any depth
    binary, time, intervals, variant, map<int, …>, …    left out

Subscriptions come from many people and a column stays for years. So the driver decides by the
schema, before there is a subscription that asks for the column: no condition can make a job fail.
What is left out is an attribute that is missing, and comparisons with it are unknown.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

__all__ = ["supported_event", "supported_value", "unsupported_parts", "warn_of_unsupported"]

_SCALARS = (
    BooleanType, NumericType, StringType, DateType, TimestampType, TimestampNTZType, NullType
)  # fmt: skip
_SHOWN = 20
_NO_ATTRIBUTES = "map<string,boolean>"


def unsupported_parts(name: str, kind: DataType) -> Iterator[str]:
    """Name the parts of a column whose types are not supported, with the types."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from unsupported_parts(f"{name}.{field.name}", field.dataType)
    elif isinstance(kind, ArrayType) and not _is_opaque(kind):
        yield from unsupported_parts(name, kind.elementType)
    elif isinstance(kind, MapType) and not _is_opaque(kind):
        yield from unsupported_parts(f"{name}.*", kind.valueType)
    elif _is_opaque(kind):
        yield f"{name} ({kind.simpleString()})"


def supported_value(column: Any, kind: DataType, otherwise: str = "boolean") -> Any:
    """Return a column without what is not supported; nulls of a type if nothing else is in it."""
    if not any(unsupported_parts("", kind)):
        return column
    left = _pruned(column, kind)
    return F.lit(None).cast(otherwise) if left is None else left


def supported_event(column: Any, kind: DataType) -> Any:
    """Return a column of whole events without what is not supported: struct, map or pairs."""
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        if _is_empty(kind.elementType.fields[-1].dataType):  # names without values
            return F.lit(None).cast(_NO_ATTRIBUTES)
    return supported_value(column, kind, _NO_ATTRIBUTES)


def _pruned(column: Any, kind: DataType) -> Any | None:
    """Return what is left of a column; None if that is nothing.

    Fields are removed and not made null: a null in a list would still make the list present.
    """
    if isinstance(kind, StructType):
        parts = {f.name: _pruned(column[f.name], f.dataType) for f in kind.fields}
        fields = [part.alias(name) for name, part in parts.items() if part is not None]
        return F.when(column.isNotNull(), F.struct(*fields)) if fields else None
    if isinstance(kind, ArrayType):
        return _inside(lambda change: F.transform(column, change), kind.elementType)
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return _inside(
            lambda change: F.transform_values(column, lambda _, value: change(value)),
            kind.valueType,
        )
    return None if _is_opaque(kind) else column


def _inside(apply: Callable[[Callable[[Any], Any]], Any], kind: DataType) -> Any | None:
    """Prune the elements of a column; None if nothing is left of them."""
    return None if _is_empty(kind) else apply(lambda element: _pruned(element, kind))


def _is_empty(kind: DataType) -> bool:
    """Return whether nothing is left of values of this type."""
    if isinstance(kind, StructType):
        return all(_is_empty(field.dataType) for field in kind.fields)
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return _is_empty(kind.valueType)
    if isinstance(kind, ArrayType):
        return _is_empty(kind.elementType)
    return _is_opaque(kind)


def warn_of_unsupported(parts: Sequence[str], stacklevel: int = 2) -> None:
    """Say in one warning which columns are left out."""
    if parts:
        more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
        warnings.warn(
            f"columns of types that cannot be compared are left out: {', '.join(parts[:_SHOWN])}"
            f"{more}; conditions on them are unknown, as for a missing attribute: cast them to"
            " another type, or name the attributes that you need",
            stacklevel=stacklevel + 1,
        )


def _is_opaque(kind: DataType) -> bool:
    """Return whether nothing in values of this type can be an attribute."""
    if isinstance(kind, StructType):
        return False
    if isinstance(kind, ArrayType):
        return _is_opaque(kind.elementType)
    if isinstance(kind, MapType):
        return not isinstance(kind.keyType, StringType)
    return not isinstance(kind, _SCALARS)
