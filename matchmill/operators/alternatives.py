"""An expression with operators as alternatives, any of which suffices.

    alternative    plain         parts without operators, all of which must be TRUE
                   conditions    (call, wanted): operators, each TRUE or, negated, FALSE
                   constraints   on the variables that the calls bind

The parts without operators stay whole, so that only the `or`s around operators multiply. "There
are values such that" goes over `or`, so each alternative is satisfied, or not, by values of its
own. That is why each has to bind every variable of its constraints, and why `not` stands before a
call only if it binds nothing: there is no finite set of values that do not satisfy it. A truth test
of operators may ask for true or for false; nothing says whether they are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, NoReturn, TypeVar

from matchmill.errors import ExpressionError, LimitError
from matchmill.language.expression import And, Expression, Not, Or, TruthTest
from matchmill.language.operator_calls import Call, Restriction, has_calls
from matchmill.language.tokens import TOKEN
from matchmill.operators.registry import place_of_call

__all__ = ["Alternative", "alternatives"]

T = TypeVar("T")


class Alternative(NamedTuple):
    """What has to hold together."""

    plain: tuple[Expression, ...] = ()
    conditions: tuple[tuple[Call, bool], ...] = ()
    constraints: tuple[Restriction, ...] = ()

    def joined(self, other: Alternative) -> Alternative:
        """Return what has to hold for both."""
        return Alternative(
            _distinct(self.plain + other.plain),
            _distinct(self.conditions + other.conditions),
            _distinct(self.constraints + other.constraints),
        )


def _distinct(parts: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(parts))


def alternatives(
    expression: Expression, limit: int = 64, text: str | None = None
) -> list[Alternative]:
    """Return the alternatives of an expression.

    Raises ExpressionError, with the place in the text, if one of them has no meaning, and
    LimitError if there are more than `limit`.
    """
    found = _Builder(limit, text).build(expression, True)
    for alternative in found:
        _check_bound(alternative, text)
    return found


class _Builder:
    def __init__(self, limit: int, text: str | None) -> None:
        self.limit = limit
        self.text = text

    def build(self, node: Expression, wanted: bool) -> list[Alternative]:
        if not has_calls(node):
            return [Alternative(plain=(node if wanted else Not(node),))]
        if isinstance(node, Call):
            if not wanted and node.variables:
                self._fail_negated(node)
            return [Alternative(conditions=((node, wanted),))]
        if isinstance(node, Restriction):
            return [Alternative(constraints=(node if wanted else node.opposite,))]
        if isinstance(node, Not):
            return self.build(node.operand, not wanted)
        if isinstance(node, TruthTest):
            if node.truth is None or node.negated == wanted:
                self._fail_test(node)
            return self.build(node.operand, node.truth)
        parts = [self.build(part, wanted) for part in node.parts]
        if isinstance(node, And) == wanted:
            return self._all_of(parts)
        assert isinstance(node, (And, Or))
        return self._limited([alternative for part in parts for alternative in part])

    def _all_of(self, parts: list[list[Alternative]]) -> list[Alternative]:
        result = [Alternative()]
        for part in parts:
            if len(result) * len(part) > self.limit:
                self._fail_limit()
            result = [a.joined(b) for a in result for b in part]
        return result

    def _limited(self, found: list[Alternative]) -> list[Alternative]:
        if len(found) > self.limit:
            self._fail_limit()
        return found

    def _fail_limit(self) -> NoReturn:
        raise LimitError(
            f"the operators of the expression have more than {self.limit} alternatives",
            text=self.text,
            position=None if self.text is None else 0,
            hint="split it into several subscriptions, or raise the setting max_clauses",
        )

    def _fail_test(self, node: TruthTest) -> NoReturn:
        raise ExpressionError(
            f"`{node.test}` cannot be asked of operators: they are true or not",
            text=self.text,
            position=None if self.text is None else 0,
            hint="test the conditions beside them, and put `not` before an operator",
        )

    def _fail_negated(self, call: Call) -> NoReturn:
        raise ExpressionError(
            f"`not` before `{call}`, which binds ?{call.variables[0]}: there are infinitely many "
            "values that do not satisfy it",
            text=self.text,
            position=place_of_call(self.text, call),
            hint="negate a constraint on the variable, or an operator without variables",
        )


def _check_bound(alternative: Alternative, text: str | None) -> None:
    bound = {name for call, _ in alternative.conditions for name in call.variables}
    for name in _names(alternative.constraints):
        if name not in bound:
            raise ExpressionError(
                f"nothing binds ?{name} where it is compared",
                text=text,
                position=_place_of_variable(text, name),
                hint=f"name it in an operator, such as count(?{name}), in the same `and`, on the"
                " same side of every `or`",
            )


def _names(constraints: Iterable[Restriction]) -> Iterable[str]:
    return (name for constraint in constraints for name in constraint.variables)


def _place_of_variable(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    places = [m.start() for m in TOKEN.finditer(text) if m.group() == f"?{name}"]
    return places[-1] if places else None
