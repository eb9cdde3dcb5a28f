"""Expressions from Python: `(attr("price") <= 580) & attr("model").like("iphone%")`.

Everything is checked as the parser checks it, so whatever is built here can be printed and parsed
again.
"""

from __future__ import annotations

from typing import Literal, NoReturn, cast

from matchmill.errors import ExpressionError, shown
from matchmill.language.expression import (
    ANY_ATTRIBUTE,
    And,
    Between,
    Compare,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Operator,
    Or,
    RLike,
)
from matchmill.language.parser import check_bounds, check_like_pattern
from matchmill.language.patterns import compile_regex
from matchmill.language.plain_values import (
    network_texts,
    pattern_text,
    plain_value,
    plain_values,
    spread,
)
from matchmill.language.term_builder import Calculating
from matchmill.language.terms import BuiltTerm, EventAttribute, Term
from matchmill.language.text_forms import TextForm
from matchmill.language.values import Value, check_literal

__all__ = ["Attribute", "any_attribute", "attr", "plain_value"]


def attr(name: str) -> Attribute:
    """Return the attribute of this name, to build an expression with.

    Parameters
    ----------
    name : str
        The name; the attributes of nested objects have dotted names (`"geo.lat"`).

    Returns
    -------
    Attribute
        Compare it with `==`, `!=`, `<`, `<=`, `>`, `>=`, or call one of its methods, which are the
        words of the language. Combine conditions with `&` and `|`; `~` negates.

    Raises
    ------
    ExpressionError
        If the name, or a value that it is compared with, cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> (mm.attr("price") <= 580) & mm.attr("model").like("iphone%")
    Expression("price <= 580 and model like 'iphone%'")
    >>> ~mm.attr("carrier").is_in("AA", "UA")
    Expression("carrier not in ('AA', 'UA')")
    """
    return Attribute(name)


def any_attribute() -> Attribute:
    """Return what stands for all texts of an event: some text has to satisfy the condition.

    Returns
    -------
    Attribute
        It has the methods of attributes that take texts and patterns.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.any_attribute().ilike("%mimikatz%")
    Expression("any attribute ilike '%mimikatz%'")
    """
    return Attribute(ANY_ATTRIBUTE, any_element=True)


class Attribute(Calculating):
    """An attribute, or with `any()` the elements of a list. Alone it is a boolean attribute."""

    __slots__ = ("_any_element", "_name")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, *, any_element: bool = False) -> None:
        if not isinstance(name, str) or not name:
            raise ExpressionError(f"an attribute's name is a non-empty string, not {shown(name)}")
        check_literal(name)
        if name == ANY_ATTRIBUTE and not any_element:
            raise ExpressionError("no attribute has this name", hint="use any_attribute()")
        self._name = str.__str__(name)
        super().__init__(EventAttribute(self._name))
        self._any_element = any_element

    def __repr__(self) -> str:
        return f"attr({self._name!r})" + (".any()" if self._any_element else "")

    def any(self) -> Attribute:
        """Look at the elements of a list: some element has to satisfy the condition.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").any().like("sale%")
        Expression("any(tags) like 'sale%'")
        """
        return Attribute(self._name, any_element=True)

    # -- comparisons

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("=", value)

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: object) -> Expression:
        return self._compare("<", value)

    def __le__(self, value: object) -> Expression:
        return self._compare("<=", value)

    def __gt__(self, value: object) -> Expression:
        return self._compare(">", value)

    def __ge__(self, value: object) -> Expression:
        return self._compare(">=", value)

    def checked_term(self) -> Term:
        """Return the attribute as something to calculate with."""
        self._reject_any("a calculation")
        return self.term

    def _compare(self, op: Operator, value: object) -> Expression:
        if isinstance(value, Attribute):
            return self._compared(op, value)
        if isinstance(value, BuiltTerm) and not self._any_element:
            return cast("Expression", NotImplemented)  # the term compares itself with the attribute
        return Compare(self._name, op, plain_value(value), self._any_element)

    @property
    def name(self) -> str:
        """The name; raises ExpressionError for the elements of a list, which have none."""
        self._reject_any("a constraint")
        return self._name

    # -- sets and ranges

    def is_in(self, *values: object) -> Expression:
        """Require one of the values, given one by one or as one list.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("carrier").is_in(["AA", "UA"])
        Expression("carrier in ('AA', 'UA')")
        """
        if any(isinstance(value, BuiltTerm) for value in spread(values)):
            return self._is_one_of(values)
        return In(self._name, plain_values(values), False, self._any_element)

    def between(self, low: object, high: object) -> Expression:
        """Require a value from low to high, both included.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("price").between(10, 20)
        Expression("price between 10 and 20")
        """
        if isinstance(low, BuiltTerm) or isinstance(high, BuiltTerm):
            return self._is_between(low, high)
        first, last = plain_value(low), plain_value(high)
        check_bounds(first, last)
        return Between(self._name, first, last, False, self._any_element)

    # -- text

    def like(self, pattern: str) -> Expression:
        r"""Require text that fits a pattern as a whole.

        `%` stands for any text, `_` for one character, `\` takes the next character literally.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("model").like("iphone%")
        Expression("model like 'iphone%'")
        """
        return self._like(pattern_text(pattern))

    def ilike(self, pattern: str) -> Expression:
        """Require text that fits a pattern, without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("model").ilike("iPhone%")
        Expression("model ilike 'iPhone%'")
        """
        return self._like(pattern_text(pattern), ignore_case=True)

    def startswith(self, *texts: str) -> Expression:
        r"""Require text that begins with this text, or with one of several.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("code").startswith("50%")
        Expression("code like '50\\%%'")
        """
        return self._formed("startswith", texts)

    def istartswith(self, *texts: str) -> Expression:
        """Require text that begins with a text, without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("host").istartswith("dc", "srv")
        Expression("host ilike 'dc%' or host ilike 'srv%'")
        """
        return self._formed("istartswith", texts)

    def endswith(self, *texts: str) -> Expression:
        r"""Require text that ends with this text, or with one of several.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("file").endswith(".pdf")
        Expression("file like '%.pdf'")
        """
        return self._formed("endswith", texts)

    def iendswith(self, *texts: str) -> Expression:
        """Require text that ends with a text, without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("image").iendswith(".EXE")
        Expression("image ilike '%.EXE'")
        """
        return self._formed("iendswith", texts)

    def contains_text(self, *texts: str) -> Expression:
        """Require text that has this text, or one of several, in it.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("message").contains_text("time out")
        Expression("message like '%time out%'")
        """
        return self._formed("contains text", texts)

    def icontains_text(self, *texts: str) -> Expression:
        """Require text that has a text in it, without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.any_attribute().icontains_text("mimikatz")
        Expression("any attribute ilike '%mimikatz%'")
        """
        return self._formed("icontains text", texts)

    def iequals(self, *texts: str) -> Expression:
        """Require a text without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("user").iequals("SYSTEM")
        Expression("user ilike 'SYSTEM'")
        """
        return self._formed("iequals", texts)

    def _formed(self, words: str, texts: tuple[str, ...]) -> Expression:
        form = TextForm(words)
        patterns = [form.pattern(pattern_text(text)) for text in spread(texts)]
        made = [self._like(pattern, ignore_case=form.ignore_case) for pattern in patterns]
        return made[0] if len(made) == 1 else Or(tuple(made))

    def _like(self, pattern: str, *, ignore_case: bool = False) -> Expression:
        check_like_pattern(pattern)
        return Like(self._name, pattern, False, ignore_case, self._any_element)

    def rlike(self, pattern: str) -> Expression:
        """Require text in which a regular expression (RE2) is found somewhere.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("message").rlike("time(d )?out")
        Expression("message rlike 'time(d )?out'")
        """
        checked = pattern_text(pattern)
        compile_regex(checked)
        return RLike(self._name, checked, False, self._any_element)

    def in_cidr(self, *networks: object) -> Expression:
        """Require text that is an IP address of one of the networks.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("source").in_cidr("10.0.0.0/8", "::1/128")
        Expression("source in cidr ('10.0.0.0/8', '::1/128')")
        """
        return InNetwork(self._name, network_texts(networks), False, self._any_element)

    # -- presence and truth

    def is_null(self) -> Expression:
        """Require that the attribute is missing, null or NaN.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("gate").is_null()
        Expression("gate is null")
        """
        self._reject_any("is null")
        return IsNull(self._name)

    def is_not_null(self) -> Expression:
        """Require that the attribute is present.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("gate").is_not_null()
        Expression("gate is not null")
        """
        self._reject_any("is not null")
        return IsNull(self._name, True)

    def alone(self) -> Expression:
        """Return the attribute as a condition: it is the boolean true.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").alone()
        Expression("cancelled")
        """
        self._reject_any("a bare attribute")
        return IsTrue(self._name)

    def is_true(self) -> Expression:
        """Require the value true; anything else is false, not unknown.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").is_true()
        Expression("cancelled is true")
        """
        return self.alone().is_true()

    def is_not_true(self) -> Expression:
        """Require anything but the value true: false, another type, nothing.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").is_not_true()
        Expression("cancelled is not true")
        """
        return self.alone().is_not_true()

    def is_false(self) -> Expression:
        """Require the value false.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").is_false()
        Expression("cancelled is false")
        """
        return self.alone().is_false()

    def is_not_false(self) -> Expression:
        """Require anything but the value false.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").is_not_false()
        Expression("cancelled is not false")
        """
        return self.alone().is_not_false()

    def is_unknown(self) -> Expression:
        """Require that the value is no boolean, or is missing.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").is_unknown()
        Expression("cancelled is unknown")
        """
        return self.alone().is_unknown()

    def is_not_unknown(self) -> Expression:
        """Require a boolean.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").is_not_unknown()
        Expression("cancelled is not unknown")
        """
        return self.alone().is_not_unknown()

    # -- lists

    def contains(self, value: object) -> Expression:
        """Require a list that holds the value.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains("sale")
        Expression("tags contains 'sale'")
        """
        return self._contains("any", (plain_value(value),))

    def contains_any(self, *values: object) -> Expression:
        """Require a list that holds at least one of the values.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains_any("sale", "new")
        Expression("tags contains any ('sale', 'new')")
        """
        return self._contains("any", plain_values(values))

    def contains_all(self, *values: object) -> Expression:
        """Require a list that holds all of the values.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains_all("sale", "new")
        Expression("tags contains all ('sale', 'new')")
        """
        return self._contains("all", plain_values(values))

    def contains_none(self, *values: object) -> Expression:
        """Require a list that holds none of the values.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains_none("sale", "new")
        Expression("tags contains none ('sale', 'new')")
        """
        return self._contains("none", plain_values(values))

    def _contains(
        self, mode: Literal["any", "all", "none"], values: tuple[Value, ...]
    ) -> Expression:
        self._reject_any("contains")
        return Contains(self._name, mode, values)

    def _reject_any(self, what: str) -> None:
        if self._any_element:
            raise ExpressionError(
                f"any() takes a comparison, not {what}",
                hint=f"leave .any() out, or compare: {shown(self)} == 'x'",
            )

    # -- as a boolean attribute

    def __and__(self, other: object) -> Expression:
        right = _operand(other)
        return NotImplemented if right is None else And((self.alone(), right))

    def __rand__(self, other: object) -> Expression:
        left = _operand(other)
        return NotImplemented if left is None else And((left, self.alone()))

    def __or__(self, other: object) -> Expression:
        right = _operand(other)
        return NotImplemented if right is None else Or((self.alone(), right))

    def __ror__(self, other: object) -> Expression:
        left = _operand(other)
        return NotImplemented if left is None else Or((left, self.alone()))

    def __invert__(self) -> Expression:
        return Not(self.alone())

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an attribute has no truth value: combine with & | ~, not and, or, not;"
            " write .is_in(…), not in; and .between(10, 20), not 10 <= x <= 20"
        )

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(f"`in` cannot build an expression: write {self!r}.contains({shown(value)})")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{shown(self)} cannot be iterated over")


def _operand(other: object) -> Expression | None:
    if isinstance(other, Attribute):
        return other.alone()
    return other if isinstance(other, Expression) else None
