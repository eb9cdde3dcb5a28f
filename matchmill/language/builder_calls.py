"""Calls and constraints from Python: `call("boats", var("n")) & (var("n") > 2 * attr("guards"))`.

Everything is checked as the parser checks it, so whatever is built here can be printed and parsed
again.
"""

from __future__ import annotations

from typing import Any, cast

from matchmill.errors import ExpressionError, shown
from matchmill.language.expression import Expression
from matchmill.language.operator_calls import Call, check_call
from matchmill.language.term_builder import TermBuilder, term_of
from matchmill.language.terms import Variable

__all__ = ["TermBuilder", "call", "var"]


def call(operator: str, *arguments: object) -> Expression:
    """Return the call of an operator, as a condition.

    Parameters
    ----------
    operator
        The name of the operator.
    arguments
        Literals, and variables (`var`).

    Raises
    ------
    ExpressionError
        If the name or an argument cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.call("boats", "tour", mm.var("n")) & (mm.var("n") > 3)
    Expression("boats('tour', ?n) and ?n > 3")
    """
    made = Call(operator, tuple(cast("Any", term_of(argument)) for argument in arguments))
    check_call(made)
    return made


def var(name: str) -> TermBuilder:
    """Return the variable of this name, to build calls and constraints with.

    Parameters
    ----------
    name
        The name, without the question mark.

    Returns
    -------
    TermBuilder
        Calculate with `+`, `-`, `*`, `/`, `%`; compare with `==`, `!=`, `<`, `<=`, `>`, `>=`; or
        call one of its methods. The other operand may be a literal, a variable or an attribute
        (`attr`).

    Raises
    ------
    ExpressionError
        If the name is no word.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.var("y") > 2 * mm.var("z")
    Expression("?y > 2 * ?z")
    >>> mm.var("n").is_in(1, mm.attr("size")) | (mm.var("s").apply("lower") == "a")
    Expression("?n in (1, size) or lower(?s) = 'a'")
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ExpressionError(f"a variable's name is a word, not {shown(name)}")
    return TermBuilder(Variable(name))
