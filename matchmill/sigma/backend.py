"""A backend of pySigma: the conditions of a rule become an `Expression`.

Sigma's logic has two values: a condition on a missing field is false, and its negation is true. So
`not` becomes `is not true`; with that, `and` and `or` mean the same in both.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionItem,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.conversion.base import Backend
from sigma.conversion.state import ConversionState
from sigma.exceptions import SigmaFeatureNotSupportedByBackendError
from sigma.rule import SigmaRule
from sigma.types import (
    CompareOperators,
    SigmaCasedString,
    SigmaRegularExpression,
)

from matchmill.language.builder import Attribute, any_attribute, attr
from matchmill.language.expression import And, Expression, Or
from matchmill.language.operator_calls import Constraint, EventAttribute
from matchmill.sigma.patterns import like_pattern, text_condition

__all__ = ["MatchmillBackend"]

_COMPARED = {
    CompareOperators.LT: Attribute.__lt__,
    CompareOperators.LTE: Attribute.__le__,
    CompareOperators.GT: Attribute.__gt__,
    CompareOperators.GTE: Attribute.__ge__,
    CompareOperators.NEQ: Attribute.__ne__,
}


class MatchmillBackend(Backend):
    """Converts rules to expressions of matchmill; `sigma convert -t matchmill` prints them.

    Examples
    --------
    >>> from sigma.collection import SigmaCollection  # doctest: +SKIP
    >>> MatchmillBackend().convert(SigmaCollection.from_yaml(text))  # doctest: +SKIP
    """

    name: ClassVar[str] = "matchmill"
    formats: ClassVar[dict[str, str]] = {"default": "expressions of matchmill, one per rule"}
    explicit_not_exists_expression: ClassVar[bool] = True

    def finalize_query(
        self,
        rule: SigmaRule,
        query: Expression,
        index: int,
        state: ConversionState,
        output_format: str,
    ) -> Expression:
        """Return the expression of one condition of a rule."""
        return query

    def finish_query(self, rule: SigmaRule, query: Any, state: ConversionState) -> Any:
        """Return the expression: nothing was deferred."""
        return query

    def finalize_output_default(self, queries: list[Expression]) -> list[str]:
        """Return the text of all expressions."""
        return [str(query) for query in queries]

    # -- conditions joined ------------------------------------------------------------------------

    def convert_condition_or(self, cond: ConditionOR, state: ConversionState) -> Expression:
        """Join alternatives."""
        return self._joined(Or, cond, state)

    def convert_condition_and(self, cond: ConditionAND, state: ConversionState) -> Expression:
        """Join requirements."""
        return self._joined(And, cond, state)

    def _joined(
        self, kind: type[And] | type[Or], cond: ConditionItem, state: ConversionState
    ) -> Expression:
        parts = tuple(self.convert_condition(part, state) for part in cond.args)
        return parts[0] if len(parts) == 1 else kind(parts)

    def convert_condition_not(self, cond: ConditionNOT, state: ConversionState) -> Expression:
        """Negate: true also where a field is missing."""
        negated: Expression = self.convert_condition(cond.args[0], state)
        return negated.is_not_true()

    def decide_convert_condition_as_in_expression(self, cond: Any, state: Any) -> bool:
        """Leave it to the engine, which unites the values of a field."""
        return False

    def convert_condition_as_in_expression(self, cond: Any, state: Any) -> Any:
        """Never asked for."""
        raise NotImplementedError

    # -- a field and a value ----------------------------------------------------------------------

    def convert_condition_field_eq_val_str(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Compare text without case."""
        return text_condition(attr(cond.field), cond.value, is_cased=False)

    def convert_condition_field_eq_val_str_case_sensitive(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Compare text with case."""
        return text_condition(attr(cond.field), cond.value, is_cased=True)

    def convert_condition_field_eq_val_num(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Compare with a number, or with its text: logs have both."""
        number = cond.value.number
        return attr(cond.field).is_in(number, str(number))

    def convert_condition_field_eq_val_bool(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Compare with a boolean, or with its text in any case."""
        attribute, value = attr(cond.field), bool(cond.value)
        return (attribute == value) | attribute.ilike("true" if value else "false")

    def convert_condition_field_eq_val_re(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Search for a regular expression."""
        return attr(cond.field).rlike(_regular_expression(cond.value))

    def convert_condition_field_eq_val_cidr(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Require an address of a network."""
        return attr(cond.field).in_cidr(str(cond.value.network))

    def convert_condition_field_compare_op_val(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Compare with a number by order."""
        return _COMPARED[cond.value.op](attr(cond.field), cond.value.number.number)

    def convert_condition_field_eq_field(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Compare two fields of the event: their values are the same, case included."""
        if cond.value.starts_with or cond.value.ends_with:
            raise _unsupported("the beginning or end of a field in another field")
        return Constraint(EventAttribute(cond.field), "=", EventAttribute(cond.value.field))

    def convert_condition_field_eq_val_timestamp_part(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Reject parts of times."""
        raise _unsupported("a part of a time")

    def convert_condition_field_eq_val_null(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Require that a field is missing or null."""
        return attr(cond.field).is_null()

    def convert_condition_field_exists(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Require a field."""
        return attr(cond.field).is_not_null()

    def convert_condition_field_not_exists(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Require that there is no such field."""
        return attr(cond.field).is_null()

    def convert_condition_field_eq_query_expr(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> Expression:
        """Reject queries in other languages."""
        raise _unsupported("a query in another language")

    # -- keywords: a value in any field -----------------------------------------------------------

    def convert_condition_val_str(
        self, cond: ConditionValueExpression, state: ConversionState
    ) -> Expression:
        """Search for a keyword in all texts of the event."""
        pattern = f"%{like_pattern(cond.value)}%"
        found = any_attribute()
        if isinstance(cond.value, SigmaCasedString):
            return found.like(pattern)
        return found.ilike(pattern)

    def convert_condition_val_num(
        self, cond: ConditionValueExpression, state: ConversionState
    ) -> Expression:
        """Search for the digits of a number in all texts of the event."""
        return any_attribute().contains_text(str(cond.value.number))

    def convert_condition_val_re(
        self, cond: ConditionValueExpression, state: ConversionState
    ) -> Expression:
        """Search all texts of the event for a regular expression."""
        return any_attribute().rlike(_regular_expression(cond.value))

    def convert_condition_query_expr(
        self, cond: ConditionValueExpression, state: ConversionState
    ) -> Expression:
        """Reject queries in other languages."""
        raise _unsupported("a query in another language")

    def convert_correlation_rule(self, rule: Any, *_: Any, **__: Any) -> list[Any]:
        """Reject rules about several events."""
        raise _unsupported("a correlation of several events")

    convert_correlation_event_count_rule = convert_correlation_rule
    convert_correlation_value_count_rule = convert_correlation_rule
    convert_correlation_value_sum_rule = convert_correlation_rule
    convert_correlation_value_avg_rule = convert_correlation_rule
    convert_correlation_value_percentile_rule = convert_correlation_rule
    convert_correlation_value_median_rule = convert_correlation_rule
    convert_correlation_temporal_rule = convert_correlation_rule
    convert_correlation_temporal_ordered_rule = convert_correlation_rule
    convert_correlation_extended_temporal_rule = convert_correlation_rule
    convert_correlation_extended_temporal_ordered_rule = convert_correlation_rule


def _unsupported(what: str) -> SigmaFeatureNotSupportedByBackendError:
    return SigmaFeatureNotSupportedByBackendError(f"{what} cannot be expressed")


def _regular_expression(value: SigmaRegularExpression) -> str:
    text: str = value.escape([], escape_escape_char=False, flag_prefix=True)
    return text
