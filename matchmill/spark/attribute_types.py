"""Which types of columns events may have, and what becomes of the others.

    boolean, numbers, text, dates, timestamps, null     attributes
    arrays of these; structs; maps from text            what is inside, at any depth
    binary, time, intervals, variant, map<int, …>, …    objects without content

    {id: 1, blob: X'89504E47', m: {k: 10:00:00}}   ──►   {id: 1, blob: X'', m: {k: X''}}

Subscriptions come from many people and a column stays for years. So the driver decides by the
schema, before there is a subscription that asks for the column: no condition can make a job fail.
An object is present, and every condition on it but `is null` is unknown, as in the library. Its
content stays where it is, because it may be large and because Arrow has no form for some of them;
operators see `b''`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
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

__all__ = ["comparable_value", "unsupported_parts", "warn_of_unsupported"]

_SCALARS = (
    BooleanType, NumericType, StringType, DateType, TimestampType, TimestampNTZType, NullType
)  # fmt: skip
_SHOWN = 20


def unsupported_parts(name: str, kind: DataType) -> Iterator[str]:
    """Name the parts of a column whose types are not supported, with the types."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from unsupported_parts(f"{name}.{field.name}", field.dataType)
    elif isinstance(kind, ArrayType):
        yield from unsupported_parts(name, kind.elementType)
    elif isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        yield from unsupported_parts(f"{name}.*", kind.valueType)
    elif not isinstance(kind, _SCALARS):
        yield f"{name} ({kind.simpleString()})"


def comparable_value(column: Any, kind: DataType) -> Any:
    """Return a column whose values of unsupported types are objects without content."""
    if not any(unsupported_parts("", kind)):
        return column
    if isinstance(kind, StructType):
        fields = (
            comparable_value(column[field.name], field.dataType).alias(field.name)
            for field in kind.fields
        )
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(kind, ArrayType):
        return F.transform(column, lambda element: comparable_value(element, kind.elementType))
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return F.transform_values(column, lambda _, value: comparable_value(value, kind.valueType))
    return F.when(column.isNotNull(), F.lit(bytearray()))


def warn_of_unsupported(parts: Sequence[str], stacklevel: int = 2) -> None:
    """Say in one warning which columns hold objects."""
    if parts:
        more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
        warnings.warn(
            f"columns of types that cannot be compared: {', '.join(parts[:_SHOWN])}{more}; every"
            " condition on them but `is null` is unknown, and operators do not get their content:"
            " cast them to another type, or name the attributes that you need",
            stacklevel=stacklevel + 1,
        )
